"""The blocks of the README and of the pages in docs/: what they show, and how it is run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

__all__ = ["README", "TOP", "Block", "blocks", "commands", "page_paths", "same_text", "write_files"]

TOP = Path(__file__).parents[2]
README = TOP / "README.md"


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: its language and what is inside."""

    language: str
    text: str


def page_paths() -> list[Path]:
    return [README, *sorted((TOP / "docs").glob("*.md"))]


def blocks(path: Path) -> list[Block]:
    found = re.findall(r"^```(\w+)\n(.*?)^```", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    return [Block(language, text) for language, text in found]


def commands(text: str) -> list[str]:
    """What follows ``python -m dpsmc_audit`` in each line that begins with it, without comments."""
    return re.findall(r"^python -m dpsmc_audit\b ?(.*?)(?:\s+#.*)?$", text, flags=re.M)


def same_text(text: str) -> str:
    """Without the differences that do not matter: white space, and times."""
    return " ".join(re.sub(r"[\d.]+ us\b", "", text).split())


def write_files(folder: Path) -> None:
    """What commands read: the modules that the recipes show, and data of the kind that they describe."""
    shown = [block.text for path in page_paths() for block in blocks(path) if block.language == "python"]
    for name, start in (("mine", "def noisy"), ("mymodel", "def drive"), ("guess", "class Distance")):
        (block,) = {text for text in shown if start in text}  # the README and the recipes may show the same
        (folder / f"{name}.py").write_text(block)
    bits = np.random.default_rng(1).random(3000) < 0.85
    (folder / "outcomes.csv").write_text("".join(f"{bit:d}\n" for bit in bits))
    lines = [f"{trace},{time},{0.1 * trace},{0.3 - 0.02 * time}" for trace in range(20) for time in range(12)]
    (folder / "traces.csv").write_text("trace,time,velocity,battery\n" + "\n".join(lines) + "\n")
    (folder / "spec.stl").write_text("(velocity > 1) until[0,10] (battery < 0.2)\n")
