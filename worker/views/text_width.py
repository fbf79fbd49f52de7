"""How wide a text is on a page, in a font that is not known: as in the widest that a reader may have."""

from __future__ import annotations

from rich.cells import cell_len

FONTS = "Helvetica, Arial, 'Liberation Sans', sans-serif"
"""What drawings ask for. A reader who has none of these mostly gets Noto Sans, DejaVu Sans or Verdana."""

# Hundredths of the font's size, of the characters from space to ~ in bold: the widest of Liberation Sans (as wide
# as Helvetica and Arial), Noto Sans and DejaVu Sans (as wide as Verdana).
_ASCII = (
    *(35, 46, 52, 84, 70, 100, 87, 31, 46, 46, 55, 84, 38, 42, 38, 41, 70, 70, 70, 70, 70, 70, 70, 70),
    *(70, 70, 40, 40, 84, 84, 84, 61, 100, 77, 76, 73, 83, 68, 68, 82, 84, 39, 56, 77, 64, 100, 84, 85),
    *(73, 85, 77, 72, 68, 81, 77, 110, 77, 72, 73, 46, 41, 46, 84, 56, 50, 67, 72, 59, 72, 68, 44, 72),
    *(71, 34, 34, 67, 34, 104, 71, 69, 72, 72, 49, 60, 48, 71, 65, 92, 65, 65, 58, 71, 55, 71, 84),
)
_CELLS = (0.0, 1.0, 1.3)  # of other characters, by the cells that they take in a terminal; emoji are the widest


def text_width(text: str, size: float) -> float:
    """Return how wide a text is at most, in the unit of the font's size."""
    return size * sum(map(_em, text))


def _em(char: str) -> float:
    return _ASCII[ord(char) - 32] / 100 if " " <= char <= "~" else _CELLS[cell_len(char)]
