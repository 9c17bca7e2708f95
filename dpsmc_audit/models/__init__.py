"""Models: anything that yields bits, or traces that a formula turns into bits."""
