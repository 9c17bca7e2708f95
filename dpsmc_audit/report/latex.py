"""Rows of results as a table in LaTeX: booktabs, numbers in maths mode, and a caption that explains the columns."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dpsmc_audit.evidence.intervals import percent
from dpsmc_audit.report.columns import Column, Row, columns_for

__all__ = ["as_latex", "cell_in_latex"]

LETTERS = {
    "\\": r"\textbackslash{}",
    **{plain: rf"\{plain}" for plain in "_%&#{}$"},
    **{plain: rf"\{plain}{{}}" for plain in "~^"},
    **{plain: f"${plain}$" for plain in "<>"},
    "|": r"\textbar{}",
    "±": r"$\pm$",
    "\n": " ",
}
"""What letters of a text are in LaTeX."""

_NUMBER = r"[+-]?(?:\d[\d,]*\.?\d*(?:e[+-]?\d+)?|inf\b)"
_ONE = re.compile(rf"(?<![\w.]){_NUMBER}(?![\w.])")
_WHOLE = re.compile(rf"<?{_NUMBER}(?: ± {_NUMBER})?(?: \[{_NUMBER}, {_NUMBER}\])?(?: \*)?(?: (?:us|ms|s))?")
"""A cell that is one expression: a number with its interval, star and unit."""

HYPOTHESES = {"H_null": r"$H_{\mathrm{null}}$", "H_alt": r"$H_{\mathrm{alt}}$"}

STUDIES = {"table1": "Table 1 of the paper, computed again."}
"""The first sentence of a caption, for a prepared sweep."""

EXPLAINED = {
    "accuracy": "Acc.: share of correct decisions.",
    "mean samples": "Samples: mean number of samples of a run.",
    "exact mean": "Exact: the exact mean.",
    "P(wrong)": r"$P(\mathrm{wrong})$: exact probability of a wrong decision.",
    "paper": "Paper: the published mean.",
    "distance": (
        "Distance: published minus exact mean, in standard errors of the published $10^4$ runs, beyond rounding."
    ),
    "delta": r"$\delta$: indifference parameter of the test.",
    "privacy delta": r"$\delta_{\mathrm{DP}}$: claimed privacy delta.",
    "privacy delta >=": r"$\delta_{\mathrm{DP}} \geq$: lower bound on the privacy delta at the claimed $\varepsilon$.",
    "privacy delta at eps": r"$\delta_{\mathrm{DP}}(\varepsilon)$: privacy delta that is needed.",
    "error": r"$\max P(\mathrm{wrong})$: larger error probability where the hypotheses begin.",
    "TV": "$d_{TV}$: total variation.",
    "total variation": "$d_{TV}$: total variation.",
}
"""What a caption says of a column."""


def as_latex(rows: Sequence[Row], study: str | None = None) -> str:
    """Write rows as a table in LaTeX. The document needs the package booktabs.

    Parameters
    ----------
    rows : sequence of dict
        The rows.
    study : str, optional
        The name of the sweep.

    Returns
    -------
    str
        A ``table`` environment with a caption.
    """
    columns = columns_for(rows)
    cells = [[cell_in_latex(column.show(row)) for column in columns] for row in rows]
    kinds = ["r" if all("$" in line[j] or line[j] == "--" for line in cells) else "l" for j in range(len(columns))]
    lines = [
        r"% needs \usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_caption(columns, rows, study)}}}",
        rf"\begin{{tabular}}{{{''.join(kinds)}}}",
        r"\toprule",
        " & ".join(column.latex for column in columns) + r" \\",
        r"\midrule",
        *(" & ".join(line) + r" \\" for line in cells),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _caption(columns: Sequence[Column], rows: Sequence[Row], study: str | None) -> str:
    first = STUDIES.get(f"{study}", f"Sweep of {len(rows)} points.")
    said = [EXPLAINED[column.heading] for column in columns if column.heading in EXPLAINED]
    if any(row.get("samples_ci") is not None for row in rows):
        level = percent(rows[0].get("confidence") or 0.99).replace("%", r"\%")
        said.append(rf"After $\pm$ stands half the width of a {level} interval.")
    marked = any(abs(row.get("distance") or 0.0) > 3.0 for row in rows)
    return " ".join([first, *said, *(["A star marks distances above 3."] if marked else [])])


def cell_in_latex(cell: str) -> str:
    """Write a cell in LaTeX.

    Parameters
    ----------
    cell : str
        The cell as the terminal shows it.

    Returns
    -------
    str
        Numbers in maths mode, everything else as text.

    Examples
    --------
    >>> print(cell_in_latex("1327.7 ± 23.8"), cell_in_latex("7.3e-28"), cell_in_latex("+5.0 *"), cell_in_latex("<1e-9"))
    $1327.7 \\pm 23.8$ $7.3 \\times 10^{-28}$ $+5.0^{*}$ $<10^{-9}$
    >>> print(cell_in_latex("0.17 us"), cell_in_latex("35 of 55"), cell_in_latex("a_b"), cell_in_latex("inf"))
    $0.17\\,\\mu\\mathrm{s}$ $35$ of $55$ a\\_b $\\infty$
    """
    if cell == "-":
        return "--"
    if cell in HYPOTHESES:
        return HYPOTHESES[cell]
    if _WHOLE.fullmatch(cell):
        return f"${_expression(cell)}$"
    pieces, end = list[str](), 0
    for found in _ONE.finditer(cell):
        pieces += [_text(cell[end : found.start()]), f"${_expression(found.group())}$"]
        end = found.end()
    return "".join([*pieces, _text(cell[end:])])


def _expression(cell: str) -> str:
    """A number, with its interval, star and unit, for maths mode."""
    cell = re.sub(r" (us|ms|s)$", lambda unit: "\\," + unit[1].replace("u", r"\mu", 1), cell)
    cell = re.sub(r"(\\,(?:\\mu)?)(ms|s)$", r"\1\\mathrm{\2}", cell)
    cell = re.sub(r"(?<![\d.])1e([+-]?)0*(\d+)", lambda x: f"10^{{{x[1].strip('+')}{x[2]}}}", cell)
    cell = re.sub(r"e([+-]?)0*(\d+)", lambda x: rf" \times 10^{{{x[1].strip('+')}{x[2]}}}", cell)
    cell = cell.replace("inf", r"\infty").replace(" ± ", r" \pm ").replace(" *", "^{*}")
    return re.sub(r"(?<=\d),(?=\d)", "{,}", cell).replace(" [", r"\ [")


def _text(text: str) -> str:
    return "".join(LETTERS.get(letter, letter) for letter in text)
