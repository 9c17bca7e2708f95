"""Answers of other programs, which cannot live in this project's environment, and the scripts that asked for them."""
