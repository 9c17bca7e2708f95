"""Sequential mechanisms with a known truth."""
