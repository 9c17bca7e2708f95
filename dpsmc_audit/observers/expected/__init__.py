"""The observer of the paper: sees termination times averaged over all other samples.

- `averages`: the average at one L. `edges`, `first_entry`, `bisection`: the L at which it reaches an edge.
- `law`: both laws in bins. `verdicts`: what they say, exactly and sampled. `picture`: the sampled histogram.
- `audit`: the observer and its result. `sentence`: the result in words.
"""
