"""Names of months in many languages, so that no log needs the locale that wrote it.

Known: Czech, Danish, Dutch, English, Estonian, Finnish, French, German, Hungarian,
Indonesian, Italian, Norwegian, Polish, Portuguese, Romanian, Russian, Slovak, Slovenian, Spanish,
Swedish, Turkish, Ukrainian, and Chinese, Japanese and Korean, which count their months. Left out
is Croatian, whose `lis` and `lip` are other months than the Polish ones.
"""

import unicodedata
from collections.abc import Iterable, Mapping

# Of each language what its abbreviations and full names begin with; accents do not count.
_NAMES = (
    "jan ian ene gen jaan janv sty led oca ocak tammi \u044f\u043d\u0432 \u0441\u0456\u0447",
    "feb fev febr fevr veebr lut uno sub subat helmi \u0444\u0435\u0432 \u043b\u044e\u0442",
    "mar marz mrz mrt marc mars marts maa maalis bre brez \u043c\u0430\u0440 \u0431\u0435\u0440",
    "apr abr avr kwi dub nis nisan huhti \u0430\u043f\u0440 \u043a\u0432\u0456",
    "may mai maj mei mag mayo kve touko \u043c\u0430\u0439 \u043c\u0430\u044f \u0442\u0440\u0430",
    "jun juin juni juuni junho giu iun iuni cze cerven cervna cen haz kesa "
    "\u0438\u044e\u043d \u0447\u0435\u0440",
    "jul juil juli juuli julho lug iul iuli lip cervenec cervence cec tem temmuz heina "
    "\u0438\u044e\u043b \u043b\u0438\u043f",
    "aug ago aout avg agt agu sie srp elo \u0430\u0432\u0433 \u0441\u0435\u0440",
    "sep set sept szept wrz zar zari eyl syys \u0441\u0435\u043d \u0432\u0435\u0440",
    "oct okt out ott paz rij eki loka \u043e\u043a\u0442 \u0436\u043e\u0432",
    "nov lis listopad kas marras \u043d\u043e\u044f \u043b\u0438\u0441",
    "dec dez dic des dets dek gru pro prosinec ara aralik joulu "
    "\u0434\u0435\u043a \u0433\u0440\u0443",
)
_COUNTED = "\u6708\uc6d4"
"""The sign after the number of a month in Chinese and Japanese, and in Korean."""
_SHORTEST, _LONGEST = 3, 12


def month_number(word: str) -> int | None:
    """Return 1 to 12 for a month's abbreviation or name, None for any other word."""
    if word.endswith(tuple(_COUNTED)):
        number = word[:-1]
        return int(number) if number in _NUMBERS else None
    folded = _folded(word)
    if not _SHORTEST <= len(folded) <= _LONGEST:
        return None
    # The longest beginning that is a name: Finnish `marras` is no `mar`.
    for length in range(len(folded), _SHORTEST - 1, -1):
        found = _MONTHS.get(folded[:length])
        if found is not None:
            return found
    return None


def _folded(word: str) -> str:
    parts = unicodedata.normalize("NFKD", word.casefold())
    return "".join(sign for sign in parts if not unicodedata.combining(sign)).rstrip(".")


def _by_name(names: Iterable[str]) -> Mapping[str, int]:
    return {_folded(name): number for number, line in enumerate(names, 1) for name in line.split()}


_NUMBERS = frozenset(str(number) for number in range(1, 13))
_MONTHS = _by_name(_NAMES)
