"""Command lines for fuzzing: every key of the configuration, with values that are right, on the edge, wrong or odd.

What would rightly take for ever (many runs, pairs, draws) is bounded here by construction. What may not take long is
not: tiny epsilon and delta, p_phi = p, late entries, narrow bins.
"""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st

__all__ = ["commands", "releases", "sweeps"]

ODD = (
    *("", "null", "true", "nan", "inf", "-inf", "-0", "0", "-1", "1e-300", "1e300", "9223372036854775807", "2.5"),
    *("18446744073709551616", str(10**40), "0x10", "1_000", "ten", "ü∂é", "'quoted'", '"quoted"', "'open", "[1,2]"),
    *("[]", "[", "{a: 1}", "{}", "${p}", "${epsilon}", "${nothing}", "${oc.env:HOME}", "${oc.env:UNSET_}", "${"),
    *("@file", "a=b", "1=2", "a b", "\\", "\t", "..", "/", "x" * 5000, "[[1]]", "range(1,3)", "choice(1)", "!!x y"),
)  # fmt: skip
"""Values that are wrong for most keys."""

FLOATS = {
    "p": ("0.73", "0.5", "0.25", "0.02", "0.999", "1e-9"),
    "p_phi": ("0.84", "0.73", "0.5", "0", "1", "0.7300001", "1e-12", "0.735", "0.999999"),
    "alpha": ("0.01", "0.05", "0.4999", "1e-12", "0.5"),
    "alpha_fp": ("0.05", "1e-12", "null", "0.499"),
    "alpha_fn": ("0.05", "1e-12", "null", "0.499"),
    "delta": ("0.01", "0.1", "0.26", "1e-9", "1e-5", "0.2"),
    "epsilon": ("0.01", "1", "20", "1e-9", "1e9", "1e-4", "800"),
    "confidence": ("0.99", "0.5", "1e-12", "0.999999999999"),
    "floor": ("0.01", "0.999999", "1e-300", "1e-15"),
    "claimed_delta": ("0.0", "0.1"),
    "mu": ("null", "0.5", "1e-9", "40"),
    "backend.checkpoint": ("0", "10", "null", "1e-9"),
}
INTEGERS = {
    "seed": ("0", "7", "18446744073709551615"),
    "entry": ("1", "2", "400", "1000000", "1000000000", "[1,5]", "[5,1]", "[1,1]", "[1,100000]", "true", "1.0"),
    "runs": ("1", "3", "100", "700"),
    "pairs": ("4", "5", "40"),
    "draws": ("2", "30", "300"),
    "bin_width": ("1", "140", "null", "1000000000", "9223372036854775807"),
    "max_steps": ("1", "2", "10", "5000", "10000000"),
    "backend.workers": ("1", "2", "4"),
    "backend.block_size": ("1", "7", "1048576"),
}
WORDS = {
    "early": ("true", "false"),
    "relation": ("gt", "ge", "lt", "le"),
    "engine.kernel": ("jumps", "steps"),
    "engine.name": ("exact",),
    "task.name": ("audit", "verify"),
    "notion.name": ("marginal",),
    "model.name": ("bernoulli", "python", "powertrain"),
    "mechanism.name": ("none", "law"),
    "backend.name": ("serial", "threads"),
    "backend.address": ("tcp://127.0.0.1:1",),
    "insecure": ("true", "false"),
    "ledger": ("releases", ".", "nowhere/x", "/dev/null", "''"),
    "budget": ("1", "0.001", "0", "-1", "nan", "1e300"),
    "study": ("table1", "p_phi"),
    "epsilons": ("null", "[0]", "[0.1,5]", "[1e300]", f"[{','.join(str(k / 50) for k in range(300))}]"),
    "formula": ('"x > 0"', '"always[0,1](e < 0.1)"', '"((("', '"1 > 0"', '"always[0,inf] e > 0"'),
    "formula_file": ("nothing.stl",),
    "sequence": ("nothing.txt", "."),
    "sampler": ("math:sqrt", "nowhere:f", "numpy", ":", "os:path", "a.b.c:d"),
    "model.target": ("math:sqrt", "nowhere:f", "numpy.random:Generator.integers"),
    "model.path": ("nothing.csv", ".", "/dev/zero", "/dev/null", "/proc/self/mem"),
    "model.column": ("ok",),
    "model.order": ("random", "file"),
    "model.step": ("0.01", "1e-300", "-1"),
    "model.setting": ("as_written", "sd_1600"),
    "model.variant": ("benchmark", "closed_loop"),
    "model.speed_range": ("[400,4000]", "[1]", "[900,800]"),
    "model.speed_sd": ("40", "0", "-1"),
    "model.duration": ("1", "0.01", "1e9", "0"),
    "model.sample_step": ("0.01", "0.003"),
    "model.maf": ("0", "0.05", "2"),
    "mechanism.distribution": ("gamma", "poisson", "cauchy", "norm", "zipf", "uniform", "levy_stable", "rv_continuous"),
    "mechanism.arguments": ("{a: 2, scale: 5}", "{mu: 3}", "{}", "{loc: 1e300}", "{scale: 1e-300}", "{a: 0.1}", "[1]"),
}  # fmt: skip
GROUPS = {
    "task": ("audit", "simulate", "estimate", "verify"),
    "mechanism": ("none", "exponential", "laplace", "truncated", "law"),
    "notion": ("expected", "marginal", "informed"),
    "engine": ("monte_carlo", "exact"),
    "model": ("bernoulli", "powertrain", "python", "recorded"),
    "backend": ("serial", "threads"),
}
SMALL = ("runs=150", "pairs=6", "draws=20", "max_steps=100000")
"""Comes first: of two overrides of one key Hydra takes the last."""
LAWS = (
    "mechanism.distribution=gamma mechanism.arguments={a:2,scale:5}",
    "mechanism.distribution=poisson mechanism.arguments={mu:3}",
    "mechanism.distribution=norm",
    "mechanism.distribution=cauchy mechanism.arguments={loc:3}",
)
STRANGE = ("unknown=1", "+new=1", "++p=0.5", "~p", "~task", "~mechanism", "p", "=1", "p==0.5", "task@x=audit", "+p=0.7",
           "+sweep=nothing", "+task=simulate", "hydra.run.dir=", "hydra.job.chdir=true", "hydra.output_subdir=.hydra",
           "hydra.verbose=true", "hydra.callbacks=null", "p_phi=${p}", "p=${p}", "alpha=${delta}", "epsilon=${task}",
           "task=[audit]", "task=null", "entry=${pairs}", "model=null", "notion={}", "--nope", "--cfg", "-z",
           "--cfg=nope", "seed=range(3,1,1)", "")  # fmt: skip

VALUES = FLOATS | INTEGERS | WORDS
PLAIN = (*FLOATS, *INTEGERS, "early", "relation", "engine.kernel", "epsilons")
"""Keys that every model knows."""
USUAL = ("epsilon=0.5", "delta=0.05")
"""Parameters at which exact laws take milliseconds."""


def _override(rng: Random) -> str:
    """One key, most often with a value that means something."""
    key = rng.choice(PLAIN if rng.random() < 0.8 else tuple(WORDS))
    value = rng.choice(VALUES[key] if rng.random() < 0.85 else ODD)
    return f"{rng.choice(['+', '++']) if rng.random() < 0.05 else ''}{key}={value}"


def _group(rng: Random, name: str) -> str:
    return f"{name}={rng.choice(GROUPS[name])}"


def _command(rng: Random) -> list[str]:
    task = _group(rng, "task")
    chosen = [*SMALL, task, *(["seed=1", "insecure=true"] if task == "task=verify" else [])]
    chosen += USUAL if rng.random() < 0.5 or task == "task=verify" else ()
    groups = ("mechanism", "notion", "engine") if task != "task=verify" else ("notion", "engine")
    chosen += [_group(rng, name) for name in groups if rng.random() < 0.5]  # the statement of other noise takes longer
    chosen += [_group(rng, "model")] if rng.random() < (0.6 if task == "task=estimate" else 0.15) else []
    chosen += rng.choice(LAWS).split() if "mechanism=law" in chosen else []
    chosen += [_override(rng) for _ in range(rng.randrange(5))]
    return [*chosen, *([rng.choice(STRANGE)] if rng.random() < 0.06 else [])]


def _sweep(rng: Random) -> list[str]:
    chosen = _command(rng)
    for key in rng.sample((*FLOATS, *INTEGERS), rng.choice([1, 1, 2])):
        chosen.append(f"{key}={','.join(rng.choice((*VALUES[key], 'nan')) for _ in range(2))}")
    return ["-m", *chosen]


def commands() -> st.SearchStrategy[list[str]]:
    """Overrides of one run, a function of one number: that makes cases far more different than a tree of choices."""
    return st.integers(0, 2**32 - 1).map(lambda seed: _command(Random(seed)))


def _release(rng: Random) -> list[str]:
    """A release without a seed; the statement of other noise takes longer, so it is rare."""
    chosen = [*SMALL, "task=verify", *USUAL, f"hydra.run.dir=r{rng.randrange(2)}"]
    chosen += ["mechanism=laplace"] if rng.random() < 0.1 else []
    for key in ("ledger", "budget", "model.path", "model.order", "max_steps", "relation", "alpha"):
        if rng.random() < 0.35:
            chosen.append(f"{key}={rng.choice(VALUES[key] if rng.random() < 0.85 else ODD)}")
    return [*chosen, *(["model=recorded"] if any(word.startswith("model.") for word in chosen) else [])]


def releases() -> st.SearchStrategy[list[str]]:
    """Overrides of a private release."""
    return st.integers(0, 2**32 - 1).map(lambda seed: _release(Random(seed)))


def sweeps() -> st.SearchStrategy[list[str]]:
    """Overrides of a sweep of two or four points."""
    return st.integers(0, 2**32 - 1).map(lambda seed: _sweep(Random(seed)))
