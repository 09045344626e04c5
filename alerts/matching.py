"""Matchers of labels, as Alertmanager has them: equal, unequal, and whole regular expressions."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

_FORM = re.compile(
    r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*(=~|!~|!=|=)\s*(?:"((?:[^"\\]|\\.)*)"|([^"]*?))\s*'
)


class MatcherError(ValueError):
    """Words that are no matcher; says why, and what one looks like."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matcher:
    """One comparison of a label with a value; a label that is missing is empty."""

    label: str
    how: Literal["=", "!=", "=~", "!~"]
    value: str
    _pattern: re.Pattern[str] | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        if self.how in ("=~", "!~"):
            try:
                object.__setattr__(self, "_pattern", re.compile(self.value))
            except re.error as error:
                raise MatcherError(
                    f"matcher {self}: {self.value!r} is no regular expression: {error}"
                ) from error

    def __str__(self) -> str:
        """Return the matcher as Alertmanager and amtool write it."""
        escaped = self.value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'{self.label}{self.how}"{escaped}"'

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether labels satisfy it."""
        value = labels.get(self.label, "")
        if self._pattern is not None:
            return (self._pattern.fullmatch(value) is not None) is (self.how == "=~")
        return (value == self.value) is (self.how == "=")


def matcher(text: str) -> Matcher:
    """Return a matcher from words such as `team="llm"`, `severity=~"page|ticket"`.

    Raises:
        MatcherError: words that are no matcher, or no regular expression.
    """
    found = _FORM.fullmatch(text)
    if found is None:
        raise MatcherError(
            f"{text!r} is no matcher; write LABEL=VALUE, LABEL!=VALUE, LABEL=~PATTERN or "
            'LABEL!~PATTERN, with the value in "" where it holds spaces'
        )
    label, how, quoted, plain = found.groups()
    value = plain if quoted is None else re.sub(r"\\(.)", _unescaped, quoted)
    return Matcher(label=label, how=how, value=value)  # type: ignore[arg-type]  # one of four


def matching(matchers: Iterable[Matcher], labels: Mapping[str, str]) -> bool:
    """Return whether labels satisfy all matchers."""
    return all(one.matches(labels) for one in matchers)


def _unescaped(found: re.Match[str]) -> str:
    return "\n" if found[1] == "n" else found[1]
