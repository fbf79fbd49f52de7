"""The notebook and the page do what they show."""

from __future__ import annotations

import ast
import io
import re
import tokenize

import pytest

from algorithms.core.jit import IS_OFF
from tests.algorithms.estimators.notebooks import TOUR, cells, run
from tests.algorithms.estimators.peers import needed
from tests.support.places import ROOT

PAGE = ROOT / "algorithms" / "estimators" / "README.md"


@pytest.mark.skipif(IS_OFF, reason="thousands of messages, which take minutes in plain Python")
def test_the_tour_shows_what_it_does() -> None:
    """Each cell, run in order, shows what is written below it."""
    needed("river")
    needed("sklearn")
    shown = list(run(cells(TOUR)))
    assert len(shown) > 5
    for cell, outputs in shown:
        assert outputs == cell["outputs"], (
            "run python -m tests.algorithms.estimators.notebooks and look at the change"
        )


def test_comments_of_the_page_are_true() -> None:
    """An expression is what the comment behind it says."""
    example = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)[0]
    comments = {
        token.start[0]: token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(example).readline)
        if token.type == tokenize.COMMENT
    }
    names: dict[str, object] = {}
    told = 0
    for statement in ast.parse(example).body:
        code = ast.unparse(statement)
        comment = comments.get(statement.lineno, "")
        if isinstance(statement, ast.Expr) and comment.startswith(("'", "{")):
            said = re.match(r"'\w+'|\{.*\}", comment)
            assert said is not None
            assert eval(code, names) == ast.literal_eval(said.group()), code
            told += 1
        else:
            exec(code, names)
    assert told == 5
