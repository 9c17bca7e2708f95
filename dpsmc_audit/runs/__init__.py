"""Where work is done and what is kept: backends, checkpoints, results on disk."""
