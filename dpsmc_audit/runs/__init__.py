"""Where work is done and what is kept of it.

- `execution`: backends that compute blocks of work. `checkpoints`: the format of unfinished work.
- `schema`: the version of result.json. `files`: reading and writing of results. `provenance`: origin of a result.
- `resume` and `sweeps`: finding finished points again. `memory`: what fits. `notes`: warnings.
"""
