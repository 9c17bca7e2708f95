"""Jitted walks: runs, pairs of runs, records."""
