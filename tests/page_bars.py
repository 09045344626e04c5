"""The bars that a page shows, read back from its HTML."""

import re
from html import unescape

_ROW = re.compile(r'<li tabindex="0"><span class="hw-name">(.*?)</span>(.*?)</li>')
_PART = re.compile(r"left:([\d.]+)%;width:([\d.]+)%")


def bars(html: str, label: str) -> dict[str, list[tuple[float, float]]]:
    """Return begin and width in percent of each part of each row, by its name."""
    (found,) = re.findall(f'<ul class="hw-bars[^>]*aria-label="{label}[^>]*>(.*?)</ul>', html)
    return {
        unescape(re.sub("<b>.*</b>|<[^>]*>", "", name)).strip(): [
            (float(begin), float(width)) for begin, width in _PART.findall(parts)
        ]
        for name, parts in _ROW.findall(found)
    }
