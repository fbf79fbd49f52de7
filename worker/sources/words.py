"""Text into words, of any language."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

_EMOJI = ((0x2600, 0x27BF), (0x1F1E6, 0x1F1FF), (0x1F300, 0x1F3FA), (0x1F400, 0x1FAFF))  # without tones of skin
_ASCII = re.compile(r"[a-z0-9]+")
# Ideographs and hiragana stand without spaces between words: each is a word, as Unicode's UAX 29 has it. So is an
# emoji.
_ALONE = (
    (0x2E80, 0x2FDF),
    (0x3041, 0x309F),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
    *_EMOJI,
)
_JOINERS = "\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}"  # inside words of Persian and Hindi


def words(text: str) -> list[str]:
    """Return the words of a text, each once, as they come.

    The text is case-folded and composed (NFC). A word is a run of letters, marks and digits; an
    ideograph and an emoji are words by themselves.

    Examples
    --------
    >>> words("Win a FREE prize: free!")
    ['win', 'a', 'free', 'prize']
    >>> words("Привет, Zoë")
    ['привет', 'zoë']
    >>> words("so good 😀😀👍🏽")
    ['so', 'good', '😀', '👍']
    """
    if text.isascii():
        return list(dict.fromkeys(_ASCII.findall(text.lower())))
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
    runs = dict.fromkeys("".join(map(_part, folded)).split())
    return [run for run in runs if _is_emoji(run) or any(map(str.isalnum, run))]  # an emoji leaves marks behind


def _is_emoji(run: str) -> bool:
    return any(first <= ord(run[0]) <= last for first, last in _EMOJI)


@cache
def _part(char: str) -> str:
    """Return what stands for a character in text that is to be split at spaces."""
    if any(first <= ord(char) <= last for first, last in _ALONE):
        return f" {char} "
    if char == "\N{SOFT HYPHEN}":
        return ""
    return char if unicodedata.category(char)[0] in "LMN" or char in _JOINERS else " "
