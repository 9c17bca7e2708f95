"""Laws, means and errors without sampling.

- `fixed`: the law of (tau, o) for one pair of bounds, and the type of exact numbers.
- `laws`: the law averaged over L. It chooses among `renewal`, `passage` (only the near bound is reached) and `strata`
  (both bounds).
- `far_bound`: the far-bound correction, which `strata` averages over L.
- `averages`: means, standard deviations and error probabilities, by `renewal` or by what holds for all L of intervals
  (`brackets`).
- `ladder`: first passages over every bound at once. `walk`: the walk, and Wald's identities between two bounds.
- `calibration`: noise that keeps the error levels.
"""
