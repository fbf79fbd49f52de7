"""A small file whose columns look otherwise than in the events before is told, before anything is published."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from worker.commands import main

FIRST = "y,shop,price,open\n" + "k,3a,1.5,1\nm,4b,2.5,0\nk,3a,7,1\n" * 5


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("first.csv").write_text(FIRST)
    assert _run("publish", "first.csv", "--log", "events.db", "--topic", "t").exit_code == 0


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def _second(text: str, *options: str) -> Result:
    Path("second.csv").write_text(text)
    return _run("publish", "second.csv", "--log", "events.db", "--topic", "t", *options)


@pytest.mark.parametrize(
    ("text", "message", "advice"),
    [
        (
            "y,shop,price,open\nk,3,1,1\nm,4,2,0\n",
            "expected categories in the column 'shop', as the topic's events and models have them, got what looks "
            "numeric; say what it is: --nominal shop, or --numeric shop",
            ("--nominal", "shop"),
        ),
        (
            "y,shop,price,open\nk,1,1,1\nm,0,2,0\n",
            "got what looks binary; say what it is: --nominal shop, or --binary shop",
            ("--binary", "shop"),
        ),
        (
            "y,shop,price,open\nk,3a,cheap,1\nm,4b,dear,0\n",
            "expected numbers or truth values in the column 'price', as the topic's events and models have them, "
            "got what looks nominal; say what it is: --numeric price, or --binary price, or --nominal price",
            ("--nominal", "price"),
        ),
    ],
)
def test_columns_that_look_otherwise(text: str, message: str, advice: tuple[str, str]) -> None:
    """Nothing is published; what the message says to add helps."""
    result = _second(text)
    assert result.exit_code == 1
    assert message in result.stderr
    assert "t               0        15" in _run("show", "events.db").stdout
    assert _second(text, *advice).exit_code == 0


@pytest.mark.parametrize(
    "text",
    [
        FIRST,
        "y,shop,price,open\nk,5c,3,1\n",
        "y,price,new\nk,3,red\n",
        "y,shop,price\nk,,3\n",
        "y,shop,price\nk,3a,1\nm,4b,0\n",
    ],
)
def test_columns_that_look_alike(text: str) -> None:
    """Other categories, other columns, cells without values and numbers that are all 0 and 1 are no matter."""
    assert _second(text).exit_code == 0


def test_what_models_take_as_numbers() -> None:
    """Before there are events, the settings tell what a column is."""
    model = {"kind": "tree", "input": "u", "classes": ["k", "m"], "features": "names"}
    models = {"tree": model | {"attributes": {"default": "binary", "numeric": ["price"]}}}
    Path("s.yaml").write_text(yaml.safe_dump({"log": {"embedded": "other.db"}, "models": models}))
    Path("second.csv").write_text("y,price\nk,cheap\nm,dear\n")
    result = _run("publish", "second.csv", "--to", "s.yaml")
    assert result.exit_code == 1
    assert "expected numbers or truth values in the column 'price'" in result.stderr
    assert _run("publish", "second.csv", "--to", "s.yaml", "--dry-run").exit_code == 1


@given(st.lists(st.tuples(st.sampled_from(["3a", "4b", ""]), st.sampled_from(["1.5", "2", "0", ""])), min_size=1))
def test_rows_of_the_first_file_are_always_taken(rows: list[tuple[str, str]]) -> None:
    """A piece of a file with the same values goes to the same topic, whatever the piece is."""
    lines = "".join(f"k,{shop},{price},1\n" for shop, price in rows)
    Path("second.csv").write_text(f"y,shop,price,open\n{lines}")
    result = _run("publish", "second.csv", "--log", "events.db", "--topic", "t")
    assert result.exit_code == 0, result.output
