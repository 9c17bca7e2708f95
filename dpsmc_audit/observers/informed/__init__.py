"""The observer who sees one released result and knows every other sample.

- `outcomes` and `law`: both laws of one sequence. `sequences`: from a file, or made to be the worst.
- `average`: over random sequences. `audit`: the observer and its result. `sentence`: the result in words.
"""
