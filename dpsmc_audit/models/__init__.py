"""Systems whose runs are sampled: anything that yields traces or bits."""
