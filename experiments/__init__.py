"""One script per table, figure or study; each rewrites its reference results and its figure."""
