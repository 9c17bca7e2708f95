"""The command line.

- `cli`: one run from its command to its result. `sweep`: the table of many. `interrupts`: Ctrl-C.
- `config` and `groups`: the schema of the configuration, with its checks. `keys`: known keys and the closest ones.
- `dispatch`: from a checked configuration to the task and its result; `audits` is the part of task=audit.
- `cautions`: warnings of a result. `messages`: errors in one line. `progress`: how far a task is.
- `own_mechanism`: mechanisms of the user.
"""
