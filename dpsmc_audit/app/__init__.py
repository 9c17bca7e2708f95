"""The command line: configuration, tasks, sweeps."""
