"""One benchmark run: a data set goes through a stream; its folder gets the scores and a report."""
