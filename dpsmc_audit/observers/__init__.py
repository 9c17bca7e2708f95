"""Who sees what: one room for each observer, with its law and its audit.

- `audit`: the public function for all observers.
- `base`: the claim, the protocol of an observer, and the family of results.
- `sentence`: the sentence of a verdict, and other texts about it, from `phrases`. Each room has a `sentence` too.
- `expected`, `marginal`, `informed`: the rooms. `black_box`: any mechanism, by its runs alone.
- `known_laws`: the audit of an observer whose two laws are known; the shortest way to a new one.
"""
