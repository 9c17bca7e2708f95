"""From samples, or exact laws, to what they say and how sure that is.

- `intervals`: of a probability and of a mean. `means`: averages of values in [0, 1].
- `events`: what two samples are compared on. `witness`: an event with its structure. `gathered`: runs, counted.
- `bounds`: lower bounds on epsilon and delta from a fixed number of runs.
- `anytime`: an e-process, bets against a claim that may be looked at after every run.
- `power`: what runs could have shown. `profiles`: delta for every epsilon.
- `claims`: what is claimed, as objects. `curves`: a claimed curve from a file.
- `verdict`: what all of them end in.
"""
