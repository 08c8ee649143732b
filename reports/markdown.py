# SPDX-License-Identifier: Apache-2.0
"""Tables in Markdown and LaTeX, without further packages."""

import pandas as pd

from reports.display import MISSING, grid

LATEX_ESCAPES = str.maketrans(
    {
        "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
        "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
        MISSING: "--",
    }
)  # fmt: skip


def markdown_table(table: pd.DataFrame) -> str:
    """``table`` (of text, see :func:`reports.display.readable`) as a Markdown table."""
    heads, rows, numeric = grid(table)
    lines = [[_escaped(text) for text in row] for row in (heads, *rows)]
    widths = [max(3, *(len(line[i]) for line in lines)) for i in range(len(heads))]
    padded = [
        [
            text.rjust(w) if n else text.ljust(w)
            for text, w, n in zip(line, widths, numeric, strict=True)
        ]
        for line in lines
    ]
    rule = ["-" * (w - 1) + ":" if n else "-" * w for w, n in zip(widths, numeric, strict=True)]
    return "\n".join(f"| {' | '.join(line)} |" for line in (padded[0], rule, *padded[1:])) + "\n"


def latex_table(table: pd.DataFrame) -> str:
    """``table`` (of text) as a LaTeX ``tabular`` for the package booktabs."""
    heads, rows, numeric = grid(table)
    lines = [" & ".join(text.translate(LATEX_ESCAPES) for text in row) for row in (heads, *rows)]
    columns = "".join("r" if n else "l" for n in numeric)
    body = [f"{line} \\\\" for line in lines]
    return "\n".join(
        [f"\\begin{{tabular}}{{{columns}}}", "\\toprule", body[0], "\\midrule", *body[1:],
         "\\bottomrule", "\\end{tabular}", ""]
    )  # fmt: skip


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
