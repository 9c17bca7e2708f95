"""Every key that the schema does not have is refused, before anything is computed, and the closest one is named."""

from __future__ import annotations

import os
import re
import string
import subprocess
import sys
from collections.abc import Iterator
from itertools import cycle, product
from pathlib import Path
from random import Random

import pytest
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from omegaconf import OmegaConf

from dpsmc_audit.app import cli
from dpsmc_audit.app.config import known_keys, refuse_unknown, register
from dpsmc_audit.app.keys import Keys, UnknownKeyError, distance
from tests.support.command import Run, result_in, runner

TOP = Path(__file__).parents[2]
SIGNS = ("", "+", "++", "~")
MOST = 3
"""Equally close keys that are named."""
LETTERS = string.ascii_lowercase + string.digits + "_."
FEW = "es_."
"""Letters that are inserted everywhere in the quick test."""
SCHEMA = tuple(name for name in known_keys().names if not name.startswith("hydra"))
SAID = re.compile(r"unknown key (\S+): the closest known keys? (?:is|are) (\S+?)(?:, (\S+))?(?: and (\S+))?")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    return runner(monkeypatch, capsys, tmp_path)


def slips(key: str, letters: str) -> set[str]:
    """What one slip makes of a key: a letter left out, two swapped, one too many, one for another."""
    cuts = [(key[:k], key[k:]) for k in range(len(key) + 1)]
    made = {a + b[1:] for a, b in cuts if b}
    made |= {a + b[1] + b[0] + b[2:] for a, b in cuts if len(b) > 1}
    made |= {a + letter + b for (a, b), letter in product(cuts, letters)}
    made |= {a + letter + b[1:] for (a, b), letter in product(cuts, letters) if b}
    return made - {key}


def refused(words: list[str]) -> tuple[str, tuple[str, ...]]:
    """The key that a command line is refused for, and those that are suggested."""
    with pytest.raises(UnknownKeyError) as caught:
        cli._refuse_unknown(words)
    found = SAID.fullmatch(f"{caught.value}")
    assert found is not None, caught.value
    key, *named = found.groups()
    return key.replace("''", ""), tuple(name for name in named if name is not None)


def count_refused(letters: str, signs_of: Iterator[tuple[str, ...]]) -> tuple[int, int]:
    """Slips of all keys that were refused, with a key one slip away suggested; and those that are keys themselves."""
    near = {name: slips(name, LETTERS) for name in known_keys().names}
    count = keys = 0
    for key in SCHEMA:
        for slip in sorted(slips(key, letters)):
            if slip in near:
                keys += 1
                cli._refuse_unknown([f"{slip}=1", f"+{slip}=1"])
                continue
            for sign in next(signs_of):
                shown, named = refused([f"{sign}{slip}=1"])
                assert shown == slip
                assert named, slip
                assert all(slip in near[name] for name in named), (slip, named)
                assert key in named or len(named) == MOST, (slip, named)
                count += 1
    return count, keys


def test_slips_of_every_key_are_refused_and_the_closest_key_is_named() -> None:
    """Some letters, and each of the signs in turn; the slow test has all of both."""
    count, keys = count_refused(FEW, cycle((sign,) for sign in SIGNS))
    assert count > 5_000
    assert keys > 0


@pytest.mark.slow
def test_all_slips_of_every_key_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    count, keys = count_refused(LETTERS, cycle([SIGNS]))
    with capsys.disabled():
        print(f"\n{count} words of {count // len(SIGNS)} slips of {len(SCHEMA)} keys refused; {keys} slips are keys")
    assert count > 200_000


def test_equally_close_keys_are_named_in_the_order_of_the_schema() -> None:
    assert known_keys().nearest("alpha_f") == ("alpha_fp", "alpha_fn")
    assert known_keys().nearest("model.seed") == ("seed", "model.step")
    many = Keys(("ad", "ac", "ab", "aa"))
    assert many.nearest("a") == ("ad", "ac", "ab")


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("speed_sd", "model.speed_sd"),
        ("engine.workers", "backend.workers"),
        ("mechanism.seed", "seed"),
        ("Epsilon", "epsilon"),
        ("swep", "sweep"),
        ("hydra.rn.dir", "hydra.run.dir"),
        ("hydra/lancher", "hydra/launcher"),
        ("epsilon.", "epsilon"),
        ("x" * 5000, "max_steps"),
    ],
)
def test_groups_that_are_missing_or_wrong_count_as_two_letters(given: str, meant: str) -> None:
    assert not known_keys().knows(given)
    assert known_keys().nearest(given)[0] == meant


def test_the_closest_key_is_found_without_a_look_at_all() -> None:
    """Lower bounds leave most keys out; the full search finds no closer one."""
    rng = Random(1)
    names = tuple(name for name in SCHEMA if "." not in name)
    some = Keys(names)
    for _ in range(200):
        word = "".join(rng.choice("aeilnoprst_") for _ in range(rng.randrange(1, 12)))
        least = min(distance(word, name) for name in names)
        assert some.nearest(word) == tuple(name for name in names if distance(word, name) == least)[:MOST]


def test_all_groups_are_keys() -> None:
    groups = {path.name for path in (TOP / "conf").iterdir()} - {"config.yaml"}
    assert groups
    assert all(known_keys().knows(group) for group in groups)


def test_names_are_free_where_they_are_anybodys() -> None:
    for word in ("+mechanism.arguments.scale=5", "+sweep=table1", "hydra.launcher.n_jobs=2", "hydra/launcher=joblib"):
        cli._refuse_unknown([word])
    assert not known_keys().knows("entry.x")


def test_added_keys_are_seen_in_a_composed_configuration() -> None:
    """However they got there: a slip of each key, added as Hydra adds one."""
    GlobalHydra.instance().clear()
    register()
    with initialize_config_dir(str(TOP / "conf"), version_base="1.3"):
        composed = compose("config")
    refuse_unknown(composed)
    for key in SCHEMA:
        changed = composed.copy()
        OmegaConf.update(changed, f"{key[:-1]}xy", 1, force_add=True)
        with pytest.raises(UnknownKeyError, match=re.escape(f"unknown key {key[:-1]}xy: ")):
            refuse_unknown(changed)


def check(run: Run, folder: Path, words: list[str], meant: str) -> None:
    code, out, err = run(*words)
    assert (code, out) == (2, ""), words
    (line,) = err.splitlines()
    assert line.startswith("error: unknown key "), line
    assert meant in line.partition(": the closest known key")[2].replace(",", "").split(), line
    assert not [path for path in folder.rglob("*") if path.name in ("result.json", "failed.txt", "table.csv")], words


EXACT = ("task=simulate", "engine=exact")
REFUSED = {
    "+epsilom=0.05": "epsilon",
    "epsilom=0.05": "epsilon",
    "++epsilom=0.05": "epsilon",
    "~epsilom": "epsilon",
    "+mechanism.scale=3": "mechanism.name",
    "+model.seed=3": "seed",
    "+epsil.on=1": "epsilon",
    "mechanim=laplace": "mechanism",
    "+swep=table1": "sweep",
    "+task@sed=audit": "seed",
    "mechanism={name: laplace, nam: 3}": "mechanism.name",
    "+model={sed: 3}": "model.step",
    "+hydra.run.dirr=x": "hydra.run.dir",
    "hydra.run={dirr: x}": "hydra.run.dir",
    "+hydra/lancher=joblib": "hydra/launcher",
    "-m +epsilom=0.1,0.2": "epsilon",
    "-m epsilom=0.1,0.2": "epsilon",
    "-m epsilon=0.1,0.2 ++backend.wrkers=2": "backend.workers",
    "-m mechanism={name: laplace},{name: laplace, nam: 3}": "mechanism.name",
    "+sweep=table1 +epsilom=0.1": "epsilon",
    "+sweep=table1 +aplha=0.1,0.2 hydra/launcher=joblib": "alpha",
}


@pytest.mark.parametrize("argument", REFUSED)
def test_unknown_keys_end_in_one_line(run: Run, tmp_path: Path, argument: str) -> None:
    words = re.split(r" (?![^{]*\})", argument)
    check(run, tmp_path, [*words, *EXACT], REFUSED[argument])


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A folder of configuration files as a user may have it."""
    folder = tmp_path / "own"
    (folder / "sweep").mkdir(parents=True)
    (folder / "mine").mkdir()
    head = "# @package _global_\n"
    swept = f"{head}hydra:\n  mode: MULTIRUN\n  sweeper:\n    params:\n      "
    for name, key in (("slip", "epsilom"), ("plus", "+epsilom"), ("good", "epsilon")):
        (folder / "sweep" / f"{name}.yaml").write_text(f"{swept}{key}: 0.1,0.2\n")
    (folder / "sweep" / "inside.yaml").write_text(f"{head}epsilom: 0.05\n")
    (folder / "mine" / "values.yaml").write_text(f"{head}epsilon: 0.05\n")
    return folder


@pytest.mark.parametrize(
    "argument",
    [
        *("+sweep=slip", "+sweep=plus", "+sweep=inside", "+mine=values +epsilom=1", "-m +epsilom=0.1,0.2"),
        "-m +mine=values +epsilom=0.1,0.2 hydra/launcher=joblib",
    ],
)
def test_unknown_keys_of_own_files_are_refused(run: Run, tmp_path: Path, own: Path, argument: str) -> None:
    check(run, tmp_path, ["--config-dir", str(own), *argument.split(), *EXACT], "epsilon")


def test_own_groups_are_no_unknown_keys(run: Run, tmp_path: Path, own: Path) -> None:
    code, _, err = run("--config-dir", str(own), "+mine=values", *EXACT, "hydra.run.dir=one")
    assert (code, err) == (0, "")
    assert result_in(tmp_path / "one")["parameters"]["epsilon"] == 0.05
    code, out, _ = run(
        f"hydra.searchpath=[file://{own}]", "+sweep=good", "study=table1", *EXACT, "hydra.sweep.dir=many"
    )
    assert (code, len(list((tmp_path / "many").rglob("result.json")))) == (0, 2), out


def test_a_job_of_a_launcher_looks_for_itself(
    run: Run, tmp_path: Path, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without what looks at a sweep before its jobs, the first job ends it."""
    monkeypatch.setattr("dpsmc_audit.app.sweep._refuse_swept", lambda config: None)
    check(run, tmp_path, ["--config-dir", str(own), "+sweep=plus", *EXACT], "epsilon")


@pytest.mark.parametrize(
    "words", [["+epsilom=0.05", "engine=exact"], ["-m", "+model.sed=1,2", "hydra/launcher=joblib"]]
)
def test_unknown_keys_in_a_process_of_its_own(tmp_path: Path, words: list[str]) -> None:
    """Not even a folder is made."""
    environment = os.environ | {"PYTHONPATH": str(TOP)}
    command = [sys.executable, "-m", "dpsmc_audit", *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"error: unknown key \S+: the closest known keys? (?:is|are) .*\n", done.stderr)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("lot", range(10))
def test_hundreds_of_command_lines_with_a_slip_are_refused(run: Run, tmp_path: Path, lot: int) -> None:
    """Single runs and sweeps, with and without a folder of own files, where Hydra comes first."""
    rng = Random(lot)
    (tmp_path / "own").mkdir()
    for _ in range(40):
        slip = rng.choice(sorted(slips(rng.choice(SCHEMA), string.ascii_lowercase)))
        if known_keys().knows(slip) or slip in ("", "."):
            continue
        words = [f"{rng.choice(('', '+', '++'))}{slip}=1", *EXACT]
        words = rng.choice([words, ["-m", "alpha=0.01,0.02", *words], ["--config-dir", str(tmp_path / "own"), *words]])
        code, out, err = run(*words)
        assert (code, out, len(err.splitlines())) == (2, "", 1), (words, err)
        assert f"unknown key {slip}: " in err, (words, err)
        assert not list(tmp_path.rglob("result.json")), words
