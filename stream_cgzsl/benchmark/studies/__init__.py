"""Studies: many runs that answer one question, in one table."""
