"""One run of the test for real: what enters is private, what leaves is a release. Nothing else may leave."""
