"""Compiled kernels, sums and comparisons that give the same result on every processor."""
