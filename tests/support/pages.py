"""The project's pages as a reader sees them: sentences, anchors, links and terms."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_FENCED = re.compile(r"^```.*?^```[^\S\n]*$", re.MULTILINE | re.DOTALL)
_ITEM = re.compile(r"(?:[*+-]|\d+\.)\s+")
_LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")


def without_code(text: str) -> str:
    """Return a page without its blocks of code."""
    return _FENCED.sub("", text)


def paragraphs(text: str) -> Iterator[str]:
    """Yield paragraphs and items of lists, each as one line: no code, no tables, no headings."""
    lines: list[str] = []
    for line in [*without_code(text).splitlines(), ""]:
        stripped = line.strip()
        item = _ITEM.match(stripped)
        ends = not stripped or stripped.startswith(("#", "|"))
        if lines and (ends or item):
            yield " ".join(lines)
            lines = []
        if not ends:
            lines.append(stripped[item.end() :] if item else stripped)


def sentences(text: str) -> list[str]:
    """Return the sentences of a page's prose; what is in backquotes counts as one word."""
    found = []
    for paragraph in paragraphs(text):
        plain = _LINK.sub(r"\1", re.sub(r"`[^`]*`", "CODE", paragraph)).replace("*", "")
        found += [part for part in re.split(r"(?<=[.!?])[)\"']*\s+", plain) if words(part)]
    return found


def words(sentence: str) -> int:
    """Return how many words a sentence has; an operator or a dash is none."""
    return sum(any(letter.isalnum() for letter in word) for word in sentence.split())


def mean_words(text: str) -> float:
    """Return the average number of words of a page's sentences."""
    counts = [words(sentence) for sentence in sentences(text)]
    return sum(counts) / len(counts)


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them; a repeated heading gets a number."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ +(.+?) *$", without_code(text), re.MULTILINE):
        plain = _LINK.sub(r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        number = 0
        while (anchor := f"{slug}-{number}" if number else slug) in found:
            number += 1
        found.add(anchor)
    return found


def links(text: str) -> list[tuple[str, str]]:
    """Return file and anchor of each relative link; no file is this page, no anchor the whole file."""
    targets = [target for _, target in _LINK.findall(re.sub(r"`[^`\n]*`", "", without_code(text)))]
    relative = (target.partition("#") for target in targets if "://" not in target)
    return [(file, anchor) for file, _, anchor in relative]


def plain(text: str) -> str:
    """Return text in which a term is found however it is written: `grace_period`, "Grace period"."""
    return " ".join(re.sub(r"[_\-]", " ", text.lower()).split())


def uses(text: str, term: str) -> bool:
    """Return whether a page uses a term, or its plural."""
    return re.search(rf"\b{re.escape(plain(term))}(s|es)?\b", plain(text)) is not None


def entries(glossary: str) -> dict[str, str]:
    """Return the terms of a glossary, in its order, and what it says of each."""
    items = (re.fullmatch(r"\*\*(.+?)\*\*: (.+)", paragraph) for paragraph in paragraphs(glossary))
    return {item[1]: item[2] for item in items if item}


def unexplained(text: str, terms: Iterable[str], glossary: str) -> list[str]:
    """Return the terms that a page uses and a glossary has no entry for."""
    known = {plain(term) for term in entries(glossary)}
    return [term for term in terms if uses(text, term) and plain(term) not in known]
