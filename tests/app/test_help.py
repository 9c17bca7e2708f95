"""--help and --version, and keys that a task does not read: made from one table, which is compared with the code."""

from __future__ import annotations

import math
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra

from dpsmc_audit import __version__
from dpsmc_audit.app.config import Config, known_keys, read, register
from dpsmc_audit.app.dispatch import TASKS
from dpsmc_audit.app.help import EXAMPLES, _Chosen, _meaning, _range
from dpsmc_audit.app.reference import REFERENCE, Key
from dpsmc_audit.errors import ParameterError
from dpsmc_audit.models.keys import MODELS
from dpsmc_audit.runs.execution import SERIAL
from tests.support.command import Run, result_in, runner
from tests.support.documents import TOP, write_files

HIDDEN = {"study", "sweep", "hydra", "task.name", "mechanism.name", "notion.name", "model.name", "engine.name"} | {
    "backend.name"
}
"""Names of sweeps, and what a group's own key sets."""
SCHEMA = [name for name in known_keys().names if not name.startswith("hydra") and name not in HIDDEN]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    write_files(tmp_path)
    return runner(monkeypatch, capsys, tmp_path)


def config(*words: str) -> Config:
    GlobalHydra.instance().clear()
    register()
    with initialize_config_dir(str(TOP / "conf"), version_base="1.3"):
        return read(compose("config", list(words)), words)


def listed(text: str) -> list[str]:
    """The keys that a help text has a line for."""
    keys = text.partition("Examples")[2].partition("null means")[0]
    return [name for name in re.findall(r"^  ([\w.]+)  ", keys, flags=re.M) if name != "python"]


def test_every_key_has_one_line() -> None:
    assert sorted(key.name for key in REFERENCE) == sorted(SCHEMA)
    assert all(key.about and not key.about.endswith(".") for key in REFERENCE)


def test_help_has_a_line_for_each_key_and_three_examples(run: Run, tmp_path: Path) -> None:
    before = set(tmp_path.iterdir())
    code, out, err = run("--help")
    assert (code, err) == (0, "")
    names = listed(out)
    assert names == [key.name for key in REFERENCE if not key.name.startswith("model.")]
    for name, shown in (("epsilon", r"0\.01 .*\[1e-9, 1e9\]"), ("max_steps", r"10000000 .*samples"), ("p_phi", "0.84")):
        (line,) = re.findall(rf"^  {name} .*$", out, flags=re.M)
        assert re.search(shown, line), line
    assert len(EXAMPLES) == 3
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize("words", [words for words, _ in EXAMPLES])
def test_the_examples_of_the_help_run(run: Run, words: str) -> None:
    few = ["runs=200"] if "simulate" in words else []
    assert run(*shlex.split(words), *few)[0] == 0


def test_help_on_a_task_lists_what_it_reads(run: Run) -> None:
    verify, simulate = (set(listed(run("--help", f"task={task}")[1])) for task in ("verify", "simulate"))
    assert {"ledger", "budget", "insecure", "p", "max_steps"} <= verify
    assert not {"pairs", "draws", "entry", "notion", "claimed_delta", "confidence"} & verify
    assert "runs" in simulate
    assert not {"pairs", "entry", "ledger"} & simulate
    assert "runs" not in listed(run("--help", "task=simulate", "engine=exact")[1])
    sampler = set(listed(run("--help", "sampler=mine:noisy")[1]))
    assert {"claimed_delta", "runs", "early"} <= sampler
    assert not {"p", "delta", "mechanism", "entry"} & sampler
    for model, keys in MODELS.items():
        shown = {name for name in listed(run("--help", f"model={model}")[1]) if name.startswith("model.")}
        assert shown <= {f"model.{key}" for key in keys}
        assert shown or model == "bernoulli"


def test_help_on_a_task_that_does_not_exist_is_refused(run: Run) -> None:
    code, out, err = run("--help", "task=fly")
    assert (code, out, len(err.splitlines())) == (2, "", 1)


@pytest.mark.parametrize(
    ("typed", "completed"),
    [("notion=ma", "notion=marginal"), ("mechanism=tr", "mechanism=truncated"), ("claimed", "claimed_delta=")],
)
def test_keys_and_values_are_completed(run: Run, monkeypatch: pytest.MonkeyPatch, typed: str, completed: str) -> None:
    monkeypatch.setenv("COMP_LINE", f"dpsmc-audit {typed}")
    code, out, err = run("-sc", "query=bash")
    assert (code, out.split(), err) == (0, [completed], "")


def test_the_version_is_ours(run: Run) -> None:
    assert run("--version") == (0, f"dpsmc_audit {__version__}\n", "")


# --- the table against the code -------------------------------------------------------------------------------------

RANGES = [key for key in REFERENCE if key.values.startswith(("[", "(", ">"))]


def ends(values: str) -> list[tuple[float, bool]]:
    """The ends of an interval, and whether they belong to it."""
    if values.startswith(">"):
        return [(float(values.strip(">= ")), "=" in values)]
    low, high = (eval(end.replace("^", "**")) for end in values[1:-1].split(","))  # of our own table
    return [(low, values[0] == "["), (high, values[-1] == "]")]


def checked(key: Key, value: float) -> None:
    """Check a configuration with this value as a run would."""
    start: dict[str, Any] = {"ledger": "x"} if key.name == "budget" else {}
    task = "verify" if key.group == "release" else "estimate" if key.name.startswith("model.") else "audit"
    words = [f"task={task}", *(["model=powertrain"] if key.name.startswith("model.") else [])]
    made = replace(config(*words), **start)
    group, _, name = key.name.partition(".")
    changed: Any = replace(getattr(made, group), **{name: value}) if name else value
    made = replace(made, **{group: changed})
    made.check()
    if key.name.startswith("model."):
        assert made.source is not None


@pytest.mark.parametrize("key", RANGES, ids=lambda key: key.name)
def test_ranges_are_those_that_the_checks_accept(key: Key) -> None:
    """Just beyond each end is refused by the name of the key; an end that belongs to the range is accepted."""
    whole = key.values.startswith(("[1,", "[2,", "[4,", ">= 1", "[0, 2^64"))
    for end, inside in ends(key.values):
        low = end == ends(key.values)[0][0]
        if whole:
            beyond: float = int(end) - 1 if low else int(end) + 1
        else:
            beyond = (math.nextafter(end, -math.inf) if low else math.nextafter(end, math.inf)) if inside else end
        with pytest.raises(ParameterError, match=key.name.rpartition(".")[2]):
            checked(key, beyond)
        if inside:
            checked(key, int(end) if whole else end)


SMALL = "p=0.7 delta=0.05 alpha=0.05 epsilon=0.3 bin_width=10"
CASES = {
    "simulate": f"{SMALL} task=simulate runs=300",
    "simulate, exact": f"{SMALL} task=simulate engine=exact",
    "simulate, no noise": f"{SMALL} task=simulate engine=exact mechanism=none",
    "expected": f"{SMALL} pairs=200 draws=50",
    "expected, exact": f"{SMALL} engine=exact",
    "marginal": f"{SMALL} notion=marginal runs=2000 pairs=20 early=false",
    "marginal, exact": f"{SMALL} notion=marginal engine=exact",
    "informed": f"{SMALL} notion=informed pairs=10",
    "estimate": "task=estimate runs=300",
}
OTHER = {"epsilon": "0.31", "entry": "3", "runs": "2100", "pairs": "210", "draws": "60", "bin_width": "11", "seed": "7"}
OTHER |= {"max_steps": "40", "confidence": "0.95", "floor": "0.05", "epsilons": "[0.1,0.2]", "engine.kernel": "steps"}
OTHER |= {"alpha": "0.06", "alpha_fp": "0.04", "mechanism": "laplace", "notion": "informed", "engine": "exact"}


def numbers(words: list[str]) -> dict[str, Any]:
    made = config(*words)
    found = TASKS[made.task.name](made, SERIAL).as_dict()
    return {name: value for name, value in found.items() if not name.startswith("seconds")}


@pytest.mark.parametrize("case", CASES)
def test_keys_called_unread_change_no_number(case: str) -> None:
    """And at least one key that is read does."""
    words = CASES[case].split()
    cases, start = config(*words).cases, numbers(words)
    keys = {key.name: key for key in REFERENCE if key.name in OTHER}
    assert set(keys) == set(OTHER)
    skipped = [name for name, key in keys.items() if not key.read_in(cases)]
    for name in skipped:
        changed = [word for word in words if not word.startswith(f"{name}=")]
        assert f"{numbers([*changed, f'{name}={OTHER[name]}'])}" == f"{start}", name
    assert f"{numbers([*words, 'seed=9', 'alpha=0.07'])}" != f"{start}"


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("task=simulate engine=exact runs=40 pairs=50 entry=3", "runs, pairs and entry"),
        ("task=simulate engine=exact mechanism=none epsilon=1", "epsilon"),
        ("notion=marginal engine=exact epsilon=0.3 delta=0.05 draws=60 pairs=70", "pairs and draws"),
        ("task=estimate alpha=0.1 runs=50", "alpha"),
    ],
)
def test_keys_that_are_not_read_are_named_in_one_warning(run: Run, tmp_path: Path, words: str, named: str) -> None:
    code, _, err = run(*words.split())
    assert code == 0
    assert re.fullmatch(rf"warning: task=\S+.* does not read {named}; --help .*\n", err)
    assert result_in(tmp_path)["warnings"] == []  # the result is that of the keys that are read


def test_a_sweep_names_them_once(run: Run) -> None:
    sweep = ("-m", "task=simulate", "engine=exact", "alpha=0.1,0.2", "hydra.sweep.dir=s")
    assert run(*sweep, "pairs=50")[2] == "warning: no point of this sweep reads pairs\n"
    mixed = ("-m", "task=simulate", "runs=50", "alpha=0.1", "engine=exact,monte_carlo", "confidence=0.9")
    assert run(*mixed, "hydra.sweep.dir=t")[2] == ""


def test_an_estimate_speaks_of_the_threshold_only_if_one_was_given(run: Run) -> None:
    assert run("task=estimate", "p_phi=0.735", "runs=50")[2] == ""
    assert "Assumption 1 does not hold" in run("task=estimate", "p_phi=0.735", "runs=50", "p=0.73")[2]


def test_the_page_of_keys_is_made_from_the_same_table() -> None:
    """Write it anew with ``python -m tests.app.test_help``."""
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_keys(page)


PAGE = TOP / "docs" / "command-line.md"


def with_keys(page: str) -> str:
    """The page with the table of all keys."""
    GlobalHydra.instance().clear()
    register()
    chosen = _Chosen.of([], str(TOP / "conf"))
    lines = ["| key | default | range, unit | meaning |", "|---|---|---|---|"]
    for key in REFERENCE:
        default = "null" if key.name.startswith("model.") else chosen.default(key)
        cells = (f"`{key.name}`", f"`{default}`", _range(key), _meaning(key).replace("|", "\\|"))
        lines.append(f"| {' | '.join(cells)} |")
    start, rest = page.split("## Keys\n\n")
    more = "\nMore on some of them: "
    return "\n".join([f"{start}## Keys\n", *lines, f"{more}{rest.split(more)[1]}"])


if __name__ == "__main__":
    PAGE.write_text(with_keys(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
