"""Web pages: the report of a run or a study, and a live page that follows a stream."""
