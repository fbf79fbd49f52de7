"""Runs the code of a notebook: ``python -m tests.algorithms.estimators.notebooks`` writes down what it shows."""

from __future__ import annotations

import ast
import contextlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.places import ROOT

TOUR = ROOT / "algorithms" / "estimators" / "tour.ipynb"


def cells(notebook: Path) -> list[dict[str, Any]]:
    """Return the cells of a notebook."""
    found: list[dict[str, Any]] = json.loads(notebook.read_text("utf-8"))["cells"]
    return found


def run(found: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Yield each cell of code with the outputs that it has when all are run in order."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for count, cell in enumerate((cell for cell in found if cell["cell_type"] == "code"), 1):
        body = ast.parse("".join(cell["source"])).body
        last = body.pop() if isinstance(body[-1], ast.Expr) else None
        printed, shown = io.StringIO(), None
        with contextlib.redirect_stdout(printed):
            exec(compile(ast.Module(body, []), "cell", "exec"), names)
            if isinstance(last, ast.Expr):
                shown = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
        yield cell, [*_stream(printed.getvalue()), *_result(shown, count)]


def _stream(text: str) -> list[dict[str, Any]]:
    return [{"name": "stdout", "output_type": "stream", "text": text.splitlines(True)}] if text else []


def _result(shown: Any, count: int) -> list[dict[str, Any]]:
    if shown is None:
        return []
    data = {"text/plain": repr(shown).splitlines(True)}
    if hasattr(shown, "_repr_html_"):
        data["text/html"] = shown._repr_html_().splitlines(True)
    return [{"data": data, "execution_count": count, "metadata": {}, "output_type": "execute_result"}]


def main() -> None:
    """Run the tour and write down what its cells show."""
    notebook = json.loads(TOUR.read_text("utf-8"))
    for count, (cell, outputs) in enumerate(run(notebook["cells"]), 1):
        cell["outputs"], cell["execution_count"] = outputs, count
    TOUR.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
