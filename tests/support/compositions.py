"""Compositions of Hydra, shared: it composes the configuration of one command, and of every point of a sweep, twice."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

__all__ = ["shared_compositions"]

MODE = "hydra.mode="

parse = OmegaConf.load
parsed: dict[str, Any] = {}
"""What a text in YAML says."""


def load_file(file: Any) -> Any:
    """`OmegaConf.load`, which parses the same text once."""
    if not hasattr(file, "read"):
        return parse(file)
    text = file.read()
    if text not in parsed:
        file.seek(0)
        parsed[text] = parse(file)
    return copy.deepcopy(parsed[text])


def with_mode(composed: DictConfig, override: str) -> DictConfig:
    """A copy with one more override, the last: that of the mode."""
    copied: DictConfig = copy.deepcopy(composed)
    copied.hydra.mode = override.removeprefix(MODE)
    copied.hydra.overrides.hydra.append(override)
    return copied


@contextmanager
def shared_compositions(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """For one command: the same overrides are composed once, checked every time, and each caller gets a copy.

    Hydra composes first to learn the mode and then again with the mode. The mode decides nothing else than which
    overrides are legal, as no entry of our defaults lists is missing.
    """
    compose = ConfigLoaderImpl.load_configuration
    known: dict[tuple[object, ...], DictConfig] = {}

    def load(
        self: ConfigLoaderImpl,
        config_name: str | None,
        overrides: list[str],
        run_mode: RunMode,
        from_shell: bool = True,
        validate_sweep_overrides: bool = True,
    ) -> DictConfig:
        given = (id(self), os.getcwd(), config_name, *overrides)
        if given not in known and overrides and overrides[-1].startswith(MODE) and given[:-1] in known:
            known[given] = with_mode(known[given[:-1]], overrides[-1])
        if given not in known:
            known[given] = compose(self, config_name, overrides, run_mode, from_shell, validate_sweep_overrides)
        elif validate_sweep_overrides:
            words = OverridesParser.create().parse_overrides(overrides=overrides)
            self.validate_sweep_overrides_legal(overrides=words, run_mode=run_mode, from_shell=from_shell)
        return copy.deepcopy(known[given])

    with monkeypatch.context() as patched:
        patched.setattr(ConfigLoaderImpl, "load_configuration", load)
        patched.setattr(OmegaConf, "load", staticmethod(load_file))
        yield
