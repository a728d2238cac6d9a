"""The embedded bus: one SQLite file that several processes share, without a server."""
