"""What researchers feed and ask: data sets, the order in which a stream brings them, and the scores."""
