"""Laws, means and errors without sampling.

- `enclosure`: the type of every exact number: an interval that is proven or an estimate.
- `fixed`: the law of (tau, o) for one pair of bounds.
- `laws`: the law averaged over L. It chooses among `renewal`, `passage` (only the near bound is reached) and `strata`
  (both bounds).
- `weight`, `prefix`: what a record weighs in a passage, and the samples up to the last forced entry.
- `averages`: means, standard deviations and error probabilities, by `renewal` or by what holds for all L of intervals
  (`both_bounds`).
- `ladder`: first passages over every bound at once. `walk`: the walk, and Wald's identities between two bounds.
- `calibration`: noise that keeps the error levels.
"""
