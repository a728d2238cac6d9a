"""Learners that regress class means on attributes with a kernel; no networks."""
