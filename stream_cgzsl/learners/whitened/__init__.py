"""The whitened feature space, in which features vary alike in every direction inside a class."""
