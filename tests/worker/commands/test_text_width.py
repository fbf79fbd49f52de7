"""Widths of texts on pages are no guesses: no font that a reader is likely to have is wider."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.ft2font import FT2Font

from worker.views.text_width import text_width

FONTS = Path(matplotlib.get_data_path()) / "fonts" / "ttf"


@pytest.mark.parametrize("font", ["DejaVuSans-Bold.ttf", "DejaVuSans.ttf"])
@given(text=st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=30))
def test_ascii(font: str, text: str) -> None:
    """As wide as one of the widest fonts at least."""
    drawn = FT2Font(str(FONTS / font))
    drawn.set_size(100, 72)
    advance = sum(drawn.load_char(ord(char)).linearHoriAdvance / 65_536 for char in text)
    assert advance <= text_width(text, 100) + len(text)


@pytest.mark.parametrize(("text", "least"), [("日本語", 3.0), ("Щ", 1.0), ("🙂", 1.25), ("é", 0.7)])
def test_other_letters(text: str, least: float) -> None:
    """Letters of other scripts have room too."""
    assert text_width(text, 1) >= least
    assert text_width("e\u0301", 1) == text_width("e", 1)  # an accent that stands above


def test_narrow_letters_are_narrow() -> None:
    """It is a sum of letters, not their count, and no wider than it has to be."""
    assert text_width("iiii", 13) < text_width("WW", 13)
    assert text_width("", 13) == 0
    assert 13 * 8 < text_width("a class of words", 13) < 13 * 11
