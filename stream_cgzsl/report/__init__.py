"""What people look at: a run or a study as one page, and a page that follows a stream."""
