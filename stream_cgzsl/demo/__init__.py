"""The demo: synthetic classes on a real bus with real workers, in half a minute."""
