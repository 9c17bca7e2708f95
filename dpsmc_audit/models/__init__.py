"""Models: anything that yields bits, or traces that a formula turns into bits.

- `sources`: the protocol, and bits of a given probability. `recorded`: from a file. `simulated`: from a function.
- `powertrain`, with its `powertrain_kernel` and `powertrain_tables`: the case study.
- `keys`: the keys ``model.*`` and the source that they describe.
"""
