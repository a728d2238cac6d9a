"""The first five minutes: a small world told as a stream, by real workers on a real bus."""
