"""From samples, or exact laws, to what they say and how sure that is.

`intervals` (a probability, a mean), `means` (averages of values in [0, 1]), `events` (what two samples are compared
on), `bounds` (lower bounds on epsilon and delta from a fixed number of runs), `anytime` (bets, looked at after every
run) and `verdict` (what all of them end in).
"""
