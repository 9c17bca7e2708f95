"""From plain arguments to a typed result."""
