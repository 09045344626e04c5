"""Text of anybody on one harmless line: what would break a document, or turn its letters around."""

import unicodedata

LONGEST = 1_000
"""Characters of one cell or paragraph; what is longer is cut, and says so."""
_REPLACED = "\ufffd"


def line(text: str) -> str:
    """Return a text on one line, without characters that control something or stand for nothing."""
    whole = " ".join(text.split())
    if len(whole) > LONGEST:
        whole = f"{whole[: LONGEST - 4]} ..."
    return "".join(_REPLACED if _is_control(one) else one for one in whole)


def _is_control(letter: str) -> bool:
    """Whether a character controls: of direction too, and half a pair that no file can hold."""
    kind = unicodedata.category(letter)
    return kind in ("Cc", "Cs") or unicodedata.bidirectional(letter) in _DIRECTIONS


_DIRECTIONS = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
