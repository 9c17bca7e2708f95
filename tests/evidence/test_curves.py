"""Claimed curves from files: what they imply, and bad files."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from dpsmc_audit.errors import ParameterError
from dpsmc_audit.evidence.claims import Gdp
from dpsmc_audit.evidence.curves import read_curve
from dpsmc_audit.evidence.profiles import privacy_profile

ONE_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)


def written(folder: Path, header: str, rows: Sequence[Sequence[float]]) -> Path:
    path = folder / "curve.csv"
    path.write_text("\n".join([header, *(",".join(f"{x!r}" for x in row) for row in rows)]))
    return path


def trade_off(p: np.ndarray, q: np.ndarray) -> list[tuple[float, float]]:
    """The corners of the trade-off curve of q (null) against p, by Neyman and Pearson."""
    order = np.argsort(-p / q)
    ends = np.cumsum(q[order]), 1.0 - np.cumsum(p[order])
    corners = [(0.0, 1.0), *zip(*(end.tolist() for end in ends), strict=True)]
    return [*corners[:-1], (1.0, 0.0)]


@given(st.lists(st.integers(1, 50), min_size=2, max_size=6))
@ONE_FOLDER
def test_a_trade_off_curve_is_the_profile_of_its_laws(tmp_path: Path, weights: list[int]) -> None:
    """Duality: delta(epsilon) of two laws, one the other reversed, and that of their trade-off curve."""
    p = np.array(weights, float) / sum(weights)
    p, q = np.concatenate([p, p[::-1] * 2]) / 3, np.concatenate([p * 2, p[::-1]]) / 3  # symmetric in p and q
    corners, seen = [], -1.0
    for alpha, beta in trade_off(p, q):  # two outcomes of the same ratio may make corners that rounding joins
        if alpha > seen + 1e-9:
            corners.append((alpha, max(beta, 0.0)))
            seen = alpha
    corners[-1] = (1.0, 0.0)
    claim = read_curve(written(tmp_path, "alpha,beta", corners))
    grid = np.array([point.epsilon for point in claim.points])
    profile = privacy_profile(p, q, grid)
    for point, delta in zip(claim.points, profile.delta_1_over_0, strict=True):
        assert point.delta_1 == point.delta_0
        assert delta - 1e-8 <= point.delta <= delta + 1e-8


def test_randomised_response_is_found_exactly(tmp_path: Path) -> None:
    claim = read_curve(written(tmp_path, "alpha,beta", [(0.0, 1.0), (0.25, 0.25), (1.0, 0.0)]))
    assert claim.points[-1].epsilon == pytest.approx(math.log(3), abs=1e-14)
    assert claim.points[-1].epsilon >= math.log(3)
    assert claim.points[-1].delta == 0.0
    assert claim.points[0].epsilon == 0.0
    assert claim.points[0].delta == pytest.approx(0.5, abs=1e-14)
    assert claim.points[0].delta >= 0.5


def test_a_fine_gaussian_curve_is_nearly_the_gaussian_claim(tmp_path: Path) -> None:
    alpha = np.append(np.append(0.0, np.geomspace(1e-9, 0.5, 4000)), np.linspace(0.5, 1.0, 500)[1:])
    beta = norm.cdf(norm.ppf(1.0 - alpha) - 1.0)
    claim = read_curve(written(tmp_path, "alpha,beta", np.stack([alpha, beta], axis=1).tolist()))
    assert len(claim.points) == 7
    for point in claim.points:
        x = point.epsilon
        assert point.delta == pytest.approx(norm.cdf(0.5 - x) - math.exp(x) * norm.cdf(-0.5 - x), rel=1e-2, abs=1e-8)


def test_a_long_profile_is_thinned_where_it_says_most(tmp_path: Path) -> None:
    epsilons = np.linspace(0.0, 8.0, 801)
    deltas = norm.cdf(0.5 - epsilons) - np.exp(epsilons) * norm.cdf(-0.5 - epsilons)
    claim = read_curve(written(tmp_path, "epsilon,delta", np.stack([epsilons, deltas], axis=1).tolist()))
    assert len(claim.points) == 7
    rows = dict(zip(epsilons.tolist(), deltas.tolist(), strict=True))
    assert all(rows[point.epsilon] == point.delta_1 == point.delta_0 for point in claim.points)
    assert claim.points[0].delta <= 0.9 * deltas[0]
    assert [point.delta < 1e-6 for point in claim.points] == [False] * 6 + [True]
    steps = np.diff([point.epsilon for point in claim.points])
    assert steps.max() < 1.1 * steps.min()


def test_a_short_profile_is_taken_as_it_is(tmp_path: Path) -> None:
    rows = [(0.0, 1.0, 0.4), (0.5, 0.3, 0.2), (1.0, 0.1, 0.2), (2.0, 0.0, 0.0)]
    header = "epsilon,delta_1_over_0,delta_0_over_1"
    claim = read_curve(written(tmp_path, header, rows))
    assert [(x.epsilon, x.delta_1, x.delta_0) for x in claim.points] == rows[1:]  # a delta of 1 claims nothing
    assert claim.name == f"{tmp_path / 'curve.csv'}"


def test_a_gaussian_claim_survives_the_file(tmp_path: Path) -> None:
    points = Gdp(0.5).points
    claim = read_curve(written(tmp_path, "epsilon,delta", [(point.epsilon, point.delta) for point in points]))
    assert claim.points == points


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "is empty"), ("\n\n", "is empty"), ("epsilon,delta\n", "holds no values"),
     ("a,b\n1,2", "line 1: columns must be"), ("1,0.5\n2,0.1", "line 1: columns must be"),
     ("epsilon,delta\n0.1,x", "line 2: delta must be a number in [0, 1], got 'x'"),
     ("epsilon,delta\n0.1", "line 2: delta must be"), ("epsilon,delta\n0.1,nan", "line 2: delta must be"),
     ("epsilon,delta\n0.1,-0.1", "line 2: delta must be"), ("epsilon,delta\n0.1,1.1", "line 2: delta must be"),
     ("epsilon,delta\n-0.1,0.1", "line 2: epsilon must be"), ("epsilon,delta\ninf,0.1", "line 2: epsilon must be"),
     ("epsilon,delta\n0.1,0.1\n\n0.1,0.1", "line 4: epsilon must grow"),
     ("epsilon,delta\n0.1,0.1\n0.2,0.2", "line 3: delta must not grow"),
     ("epsilon,delta_1_over_0,delta_0_over_1\n0.1,0.1,0.1\n0.2,0.1,0.2", "line 3: delta must not grow"),
     ("epsilon,delta\n0.1,1", "claims nothing"),
     ("alpha,beta\n0.1,0.5\n1,0", "line 2: alpha must begin at 0"),
     ("alpha,beta\n0,1\n0.9,0", "line 3: alpha must end at 1"),
     ("alpha,beta\n0,1\n0.5,0.6\n1,0", "line 3: beta must not exceed 1 - alpha"),
     ("alpha,beta\n0,0.5\n0.2,0.6\n1,0", "line 3: beta must not grow"),
     ("alpha,beta\n0,1\n0,0.5\n1,0", "line 3: alpha must grow"),
     ("alpha,beta\n0,1\n0.2,0.5\n0.4,0.45\n0.6,0.1\n1,0", "line 4: beta must be a convex function"),
     ("alpha,beta\n0,1\n1,2", "line 3: beta must be a number in [0, 1]")],
)  # fmt: skip
def test_a_bad_file_is_named_with_its_line(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "curve.csv"
    path.write_text(text)
    with pytest.raises(ParameterError) as caught:
        read_curve(path)
    assert words in f"{caught.value}"
    assert f"{path}" in f"{caught.value}"
    assert "\n" not in f"{caught.value}"


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for name in ("missing", "binary", "."):
        with pytest.raises(ParameterError, match=r"cannot read|not a CSV"):
            read_curve(tmp_path / name)
