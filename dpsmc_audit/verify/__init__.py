"""One private run of the test. Samples and noise stay in a child process. Only the release leaves it."""
