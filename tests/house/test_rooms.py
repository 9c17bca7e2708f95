"""The rooms of the package: every import leads down, late imports and those for types included."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.documents import TOP

PACKAGE = TOP / "dpsmc_audit"

FLOORS = (
    {"errors", "certificate"},
    {"targets", "numerics"},
    {"sprt"},
    {"runs"},
    {"mechanisms"},
    {"setting"},
    {"exact", "sampling"},
    {"stl"},
    {"models"},
    {"evidence"},
    {"observers", "zoo"},
    {"verify"},
    {"tasks"},
    {"report"},
    {"app"},
)
"""From the ground up. A room may import itself and rooms below; rooms of one floor do not know each other."""


def modules() -> dict[str, Path]:
    """Files by their names below the package, such as `runs.files`."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        found[name.removesuffix(".__init__")] = path
    return found


def nodes(tree: ast.AST, types: bool) -> Iterator[ast.AST]:
    """All parts of a file; without `types`, those under ``if TYPE_CHECKING`` are left out."""
    for node in ast.iter_child_nodes(tree):
        if types or not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            yield node
            yield from nodes(node, types)


def imports(path: Path, types: bool = True) -> Iterator[str]:
    """The modules of the package that a file imports anywhere, as names below the package."""
    for node in nodes(ast.parse(path.read_text(encoding="utf-8")), types):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            assert not isinstance(node, ast.ImportFrom), f"{path}: relative import"
            continue
        yield from (name.removeprefix("dpsmc_audit.") for name in names if name.startswith("dpsmc_audit"))


def graph(types: bool = True) -> dict[str, set[str]]:
    """Who imports whom, module by module."""
    known = modules()
    found: dict[str, set[str]] = {}
    for name, path in known.items():
        found[name] = {x if x in known else x.rpartition(".")[0] for x in imports(path, types)} & known.keys()
    return found


def room(module: str) -> str:
    return module.partition(".")[0]


def floor(module: str) -> int:
    (number,) = (k for k, rooms in enumerate(FLOORS) if room(module) in rooms)
    return number


def test_every_module_has_its_floor() -> None:
    rooms = {room(name) for name in modules()} - {"__init__", "__main__"}
    assert rooms == set().union(*FLOORS)


def test_every_import_leads_down() -> None:
    for name, targets in graph().items():
        if name in ("__init__", "__main__"):
            continue
        for target in targets - {"__init__"}:
            same = room(name) == room(target)
            assert same or floor(target) < floor(name), f"{name} imports {target}"


def test_no_module_imports_itself_through_others() -> None:
    """A search in depth: a module that is met again while it is still open closes a cycle.

    Late imports count; those for the type checker alone are never made.
    """
    known, done = graph(types=False), set[str]()

    def visit(name: str, open_: tuple[str, ...]) -> None:
        assert name not in open_, " -> ".join((*open_, name))
        if name not in done:
            for target in sorted(known[name] - {"__init__"}):
                visit(target, (*open_, name))
            done.add(name)

    for name in sorted(known):
        visit(name, ())


def test_few_modules_stand_at_the_top() -> None:
    assert len(list(PACKAGE.glob("*.py"))) <= 10


@pytest.mark.parametrize("library", ["hydra", "omegaconf"])
def test_the_configuration_library_is_known_to_the_application_alone(library: str) -> None:
    for name, path in modules().items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                roots = {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                roots = {f"{node.module}".split(".")[0]}
            else:
                continue
            assert library not in roots or room(name) == "app", f"{name} imports {library}"
