"""Numerical tools that know nothing of classes or windows."""
