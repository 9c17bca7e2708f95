"""From samples, or exact laws, to what they say and how sure that is.

- `intervals`: of a probability and of a mean. `means`: averages of values in [0, 1].
- `outputs`, `columns`, `samples`: runs of any mechanism, read and checked. `views`, `scales`, `codes`, `derived`: runs
  as real numbers.
- `game`: labels are guessed run by run. `predictor`, `shapes`, `scores`: what guesses. `bets`: the e-process, capital
  that refutes claims at any time. `summary`, `shown`, `packing`: verdict, histogram and trade-off curve, checkpoint.
- `events`: what two samples are compared on. `witness`: an event with its structure.
- `bounds`: lower bounds on epsilon and delta from a fixed number of runs.
- `power`: what runs could have shown. `profiles`: delta for every epsilon.
- `claims`: what is claimed, as objects. `curves`: a claimed curve from a file.
- `verdict`: what all of them end in.
"""
