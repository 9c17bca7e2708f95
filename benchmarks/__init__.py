"""How fast, against what: ratios measured side by side in one run. ``python -m benchmarks``."""

import os

# one core is one core: NumPy's linear algebra would wait for a second one, and count the waiting
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
