"""Learners with two networks, a generator G and a discriminator D: the paper's systems and ours."""
