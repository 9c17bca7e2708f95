"""From samples or exact laws to statements, with their confidence.

`intervals` (a probability, a mean), `means` (averages of values in [0, 1]), `events` (the events on which two samples
are compared), `bounds` (lower bounds on epsilon and delta from a fixed number of runs), `anytime` (bets that are
checked after every run) and `verdict` (the result of all of them).
"""
