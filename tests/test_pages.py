"""The pages are easy to read: links lead somewhere, sentences are short, terms are explained."""

from __future__ import annotations

import pytest

from tests.support.pages import (
    anchors,
    entries,
    links,
    mean_words,
    paragraphs,
    sentences,
    unexplained,
    uses,
    words,
)
from tests.support.places import ROOT

GLOSSARY = "algorithms/GLOSSARY.md"
PAGES = [
    *("README.md", "algorithms/README.md", "worker/README.md", "deploy/README.md"),
    *("deploy/clients/README.md", "algorithms/PAPERS.md"),
    *(f"algorithms/{part}/README.md" for part in ("trees", "dynamic", "forests", "regression", "estimators")),
]
FRONT_DOOR = 200  # lines that a newcomer reads before the first command of their own
MEAN_WORDS = 14.0  # the page of trees has most, 12.9; before they were rewritten, pages had 13 to 20
MOST_WORDS = 35  # of one sentence; the longest have 32, of them many are numbers

# Words of the field and of Kafka that a reader may not know: the glossary has those that a page uses.
TERMS = (
    *("bagging", "branch and bound", "checkpoint", "criterion", "dead letter", "drift", "embedded log"),
    *("ensemble", "exactly once", "example store", "feasibility guarantee", "finder", "fixed point", "gain"),
    *("grace period", "greedy tree", "Hoeffding bound", "hysteresis", "impurity", "Kappa", "kernel"),
    *("lazy insertion", "live example", "Mondrian tree", "naive Bayes", "null split", "observer", "policy"),
    *("pool", "prequential", "quadtree", "quarantine", "recording", "runner-up", "schema registry", "snapshot"),
    *("split confidence", "tie threshold", "tombstone"),
)


def _text(page: str) -> str:
    return (ROOT / page).read_text("utf-8")


@pytest.mark.parametrize("page", [*PAGES, GLOSSARY, "CHANGELOG.md", "worker/data/README.md"])
def test_links(page: str) -> None:
    """Every relative link of a page leads to a file, and to a heading of it where it names one."""
    lost = []
    for file, anchor in links(_text(page)):
        target = (ROOT / page).parent / file if file else ROOT / page
        if not target.exists() or (anchor and anchor not in anchors(target.read_text("utf-8"))):
            lost.append(f"{file}#{anchor}")
    assert lost == []


def test_front_door() -> None:
    """The README stays short: what it is, how to begin, where to go on."""
    assert len(_text("README.md").splitlines()) <= FRONT_DOOR


@pytest.mark.parametrize("page", PAGES)
def test_first_sentence(page: str) -> None:
    """A page begins with what a reader can do after it, and shows the way to the glossary."""
    text = _text(page)
    assert any(sentence.startswith("After this page you ") for sentence in sentences(text)[:2])
    assert any(target.endswith("GLOSSARY.md") for target, _ in links(text))


@pytest.mark.parametrize("page", [*PAGES, GLOSSARY])
def test_sentences_are_short(page: str) -> None:
    """Prose is in sentences that need to be read once: short on average, and none very long."""
    text = _text(page)
    assert mean_words(text) <= MEAN_WORDS
    assert [sentence for sentence in sentences(text) if words(sentence) > MOST_WORDS] == []


def test_glossary() -> None:
    """Terms are in the order of the alphabet, each with one or two sentences, and some page uses each."""
    glossary = entries(_text(GLOSSARY))
    assert len(glossary) >= 24
    assert list(glossary) == sorted(glossary, key=str.lower)
    assert [term for term, said in glossary.items() if not 1 <= len(sentences(said)) <= 2] == []
    pages = "\n".join(_text(page) for page in PAGES)
    assert [term for term in glossary if not uses(pages, term)] == []


@pytest.mark.parametrize("page", PAGES)
def test_terms_are_explained(page: str) -> None:
    """A term of the field that a page uses has an entry in the glossary."""
    assert unexplained(_text(page), TERMS, _text(GLOSSARY)) == []


# --- the checks can fail

PAGE = """# A *page* of [two](one.md) parts, v1.0

A first sentence has `some code here` in it. Is [the second](two.md#at-once) one
longer (yes)? A third!

## At once
## At once

* An item, 0.5 > epsilon.
* Two. Items.

| Not | prose |
|---|---|

```sh
# Not a heading. [no](link.md)
```
"""


def test_prose_of_a_page() -> None:
    """Sentences are of paragraphs and lists alone; code and links are as a reader sees them."""
    assert sentences(PAGE) == [
        "A first sentence has CODE in it.",
        "Is the second one longer (yes)?",
        "A third!",
        "An item, 0.5 > epsilon.",
        "Two.",
        "Items.",
    ]
    assert words("An item, 0.5 > epsilon.") == 4
    assert mean_words("Two words. And these are four words here.") == 4.0
    assert list(paragraphs("a\nb\n\n1. c\n   d\n- e")) == ["a b", "c d", "e"]


def test_anchors_and_links_of_a_page() -> None:
    """Anchors are made as GitHub makes them; links in code are none."""
    assert anchors(PAGE) == {"a-page-of-two-parts-v10", "at-once", "at-once-1"}
    assert anchors("## The index (exact.py, `quadtree.py`)") == {"the-index-exactpy-quadtreepy"}
    assert links(PAGE + "`[no](3.md)` [away](https://example.org/#a)") == [("one.md", ""), ("two.md", "at-once")]


def test_unexplained_terms() -> None:
    """A term is found however it is written, and told where the glossary has no entry."""
    glossary = "# Glossary\n\nWords.\n\n* **dead letter**: a record.\n* **tie**: two of one score.\n"
    assert entries(glossary) == {"dead letter": "a record.", "tie": "two of one score."}
    page = "Dead-letter topics, `grace_period`, a\nnull split, and ties."
    terms = ("dead letter", "grace period", "null split", "tie", "quadtree")
    assert unexplained(page, terms, glossary) == ["grace period", "null split"]
    assert not uses("Untied", "tie")
