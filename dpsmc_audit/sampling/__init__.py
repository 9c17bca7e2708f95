"""Jitted walks.

- `plan`: how things are sampled.
- `streams`: the random streams and their purposes.
- `kernels`: every jitted loop; `jump_tables`: what one of them draws from.
- `runs`, `pairs`, `records`: independent runs, adjacent sequences, and where one sequence sets records.
"""
