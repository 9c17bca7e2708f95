"""Reads a table in LaTeX, as there may be no LaTeX where tests run."""

from __future__ import annotations

import re

from matplotlib.mathtext import MathTextParser


def check_latex(text: str, rows: int, stars: int = 0) -> None:
    """A booktabs table with a caption; numbers in maths mode, which Matplotlib can set; the star explained."""
    found = re.fullmatch(
        r"% needs \\usepackage\{booktabs\}\n\\begin\{table\}\n\\centering\n\\caption\{(?P<caption>.+)\}\n"
        r"\\begin\{tabular\}\{(?P<kinds>[lr]+)\}\n\\toprule\n(?P<head>.*) \\\\\n\\midrule\n(?P<body>(?:.* \\\\\n)+)"
        r"\\bottomrule\n\\end\{tabular\}\n\\end\{table\}\n",
        text,
    )
    assert found is not None, text
    body = [re.split(r"(?<!\\) & ", line.removesuffix(r" \\")) for line in found["body"].splitlines()]
    assert len(body) == rows
    assert {len(line) for line in body} == {len(found["kinds"])} == {found["head"].count(" & ") + 1}
    assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}")
    parser = MathTextParser("agg")
    for part in [found["caption"], found["head"], *(cell for line in body for cell in line)]:
        assert part.replace(r"\$", "").count("$") % 2 == 0
        for maths in re.findall(r"(?<!\\)\$.+?(?<!\\)\$", part):
            parser.parse(maths)
    for line in body:
        for cell in line:
            plain = re.sub(r"(?<!\\)\$.+?(?<!\\)\$", "", cell)
            assert not re.search(r"(?<![\w.])[\d.]+(?![\w.])", plain), f"a number outside of maths mode: {cell}"
    assert sum("{*}" in cell for line in body for cell in line) == stars
    assert ("A star marks" in found["caption"]) == (stars > 0)
