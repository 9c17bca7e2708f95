"""Everything public says what its parameters are: each by its name, in a section of NumPy's style."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.documents import TOP

FILES = sorted((TOP / "dpsmc_audit").rglob("*.py"))

Definition = ast.ClassDef | ast.FunctionDef


def public(body: list[ast.stmt]) -> Iterator[Definition]:
    """Public classes and functions, methods included; overloads are described once."""
    for node in body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith("_"):
            if "overload" not in decorators(node):
                yield node
            if isinstance(node, ast.ClassDef):
                yield from public(node.body)


def decorators(node: Definition) -> set[str]:
    return {ast.unparse(decorator).partition("(")[0] for decorator in node.decorator_list}


def arguments(function: ast.FunctionDef) -> list[str]:
    found = function.args
    names = [each.arg for each in (*found.posonlyargs, *found.args, *found.kwonlyargs)]
    return [name for name in names if name not in ("self", "cls") and not name.startswith("_")]


def fields(node: ast.ClassDef) -> list[str]:
    """What an instance is made from."""
    for part in node.body:
        if isinstance(part, ast.FunctionDef) and part.name == "__init__":
            return arguments(part)
    made = "dataclass" in decorators(node) or "NamedTuple" in {ast.unparse(base) for base in node.bases}
    known = [part for part in node.body if isinstance(part, ast.AnnAssign) and made]
    known = [part for part in known if not part.value or "init=False" not in ast.unparse(part.value)]
    names = [ast.unparse(part.target) for part in known if "ClassVar" not in ast.unparse(part.annotation)]
    return [name for name in names if not name.startswith("_")]


def described(node: Definition) -> set[str]:
    """The names in the section Parameters of a docstring."""
    text = ast.get_docstring(node) or ""
    section = re.search(r"^Parameters\n-{10}\n(.*?)(?=\n\n\S+\n---|\Z)", text, re.DOTALL | re.MULTILINE)
    heads = [line.partition(" : ")[0] for line in (section.group(1) if section else "").splitlines()]
    return {name.strip("* ") for head in heads if head and not head.startswith(" ") for name in head.split(",")}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(TOP / "dpsmc_audit").as_posix())
def test_parameters_are_described_by_name(path: Path) -> None:
    for node in public(ast.parse(path.read_text(encoding="utf-8")).body):
        wanted = fields(node) if isinstance(node, ast.ClassDef) else arguments(node)
        assert set(wanted) <= described(node), f"{node.name}: {set(wanted) - described(node)}"


def test_a_parameter_without_a_description_is_found() -> None:
    source = 'def f(a, b):\n    """Do.\n\n    Parameters\n    ----------\n    a : int\n        It.\n    """\n'
    (node,) = public(ast.parse(source).body)
    assert isinstance(node, ast.FunctionDef)
    assert set(arguments(node)) - described(node) == {"b"}
