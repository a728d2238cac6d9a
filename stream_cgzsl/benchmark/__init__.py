"""For researchers: data sets, the task order in which a stream receives them, runs, studies and scores."""
