"""The systems the paper compares itself with, one a file; none of them is needed to learn a stream."""
