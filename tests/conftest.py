"""On CI hypothesis draws the same examples every time; elsewhere it goes on looking for new ones.

What the imports leave is never garbage: the collector does not look through it again and again.

BLAS runs in one thread: there is a worker for each core, and further threads would spin while they wait for one.
"""

from __future__ import annotations

import gc
import os

from hypothesis import settings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported, here and in the processes of tests

settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
