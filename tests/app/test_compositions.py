"""Commands in this process share compositions (`tests.support.compositions`): they get what Hydra composes anew."""

from __future__ import annotations

from pathlib import Path

import pytest
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.errors import ConfigCompositionException
from hydra.types import RunMode
from omegaconf import OmegaConf

from dpsmc_audit.app.config import register
from tests.support.compositions import shared_compositions

CONF = Path(__file__).parents[2] / "conf"


def loader() -> ConfigLoaderImpl:
    from hydra._internal.utils import create_config_search_path

    register()
    return ConfigLoaderImpl(create_config_search_path(f"{CONF}"))


@pytest.mark.parametrize(
    "overrides",
    [
        [],
        ["alpha=0.02", "task=simulate"],
        ["+sweep=table1", "alpha=0.01,0.05"],
        ["hydra.run.dir=x", "model=powertrain"],
    ],
)
@pytest.mark.parametrize("mode", [RunMode.RUN, RunMode.MULTIRUN])
def test_a_shared_composition_is_that_of_hydra(
    monkeypatch: pytest.MonkeyPatch, overrides: list[str], mode: RunMode
) -> None:
    told = [*overrides, f"hydra.mode={mode.name}"]
    if mode == RunMode.RUN:
        told = [word.split(",")[0] for word in told]
    plain = loader().load_configuration("config", told, mode)
    with shared_compositions(monkeypatch):
        shared = loader()
        shared.load_configuration("config", told[:-1], RunMode.MULTIRUN, validate_sweep_overrides=False)
        for _ in range(2):
            found = shared.load_configuration("config", told, mode)
            assert OmegaConf.to_container(found) == OmegaConf.to_container(plain)
            assert repr(found) == repr(plain)
            found.hydra.job.name = "changed"  # in a copy


def test_overrides_that_a_mode_does_not_allow_are_refused_after_all(monkeypatch: pytest.MonkeyPatch) -> None:
    with shared_compositions(monkeypatch):
        shared = loader()
        shared.load_configuration("config", ["alpha=0.1,0.2"], RunMode.MULTIRUN, validate_sweep_overrides=False)
        with pytest.raises(ConfigCompositionException):
            shared.load_configuration("config", ["alpha=0.1,0.2", "hydra.mode=RUN"], RunMode.RUN)
