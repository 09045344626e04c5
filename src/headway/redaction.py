"""Masks what looks like a secret in text that is stored or logged. Pure.

Programs put secrets where they do not belong: in the address of a tracker, in a command line, in
the message of an exception. What is known by its shape is masked: credentials of an address, what
follows `Bearer`, a value with a name such as `api_key`, and keys with the published prefixes of
AWS, GitHub, GitLab, Hugging Face, OpenAI, Slack and Headway. Values that this machine's own
environment calls secret are masked as they stand (`secrets_of`).
"""

import re
from collections.abc import Collection, Mapping
from functools import cache, lru_cache
from typing import Any

MASK = "[masked]"
_SHORTEST = 8
"""Characters from which a text is looked at and the value of a variable counts as a secret."""

_PRIVATE_NAME = (
    r"passw(?:or)?d|passphrase|secret|(?<![a-z])token(?![a-z])|api[_-]?key|access[_-]?key|"
    r"private[_-]?key|credential|authorization"
)
_PRIVATE_VARIABLE = r"(?:^|_)(?:PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|KEY|CREDENTIALS?)(?:$|_)"

# Every repetition has an upper end, so that no text makes the search take long.
_NAME = r"[a-z0-9_.-]{0,60}(?:passw(?:or)?d|passphrase|secret|(?:api|access|private)[_-]?key)s?"
_SHAPES = rf"""
    (?P<address>\b[a-z][a-z0-9+.-]{{0,20}}://)[^\s/@'"<>]{{1,500}}@
  | (?P<scheme>\b(?:bearer|basic)\s{{1,3}})[a-z0-9._~+/=-]{{8,}}
  | (?P<name>\b{_NAME}["']?\s{{0,3}}[:=]\s{{0,3}}["']?)[^\s"',;&)]{{6,}}
  | (?P<option>--{_NAME}\s{{1,3}}["']?)[^\s"',;&)]{{6,}}
  | (?P<token>(?:\b|_)token["']?(?:\s{{0,3}}[:=]\s{{0,3}}|\s)["']?)
    (?=[^\s"',;&)]{{0,500}}\d)(?![\d.,]+(?:\s|$))[^\s"',;&)]{{12,}}
  | -----BEGIN\ [A-Z ]{{0,30}}PRIVATE\ KEY-----.*?(?:-----END\ [A-Z ]{{0,30}}KEY-----|\Z)
  | \b(?:AKIA|ASIA)[0-9A-Z]{{16}}\b
  | \b(?:gh[pousr]_|github_pat_|glpat-|hf_|headway_|sk-|xox[abeoprs]-)[a-z0-9_-]{{20,}}
  | \beyJ[a-z0-9_-]{{8,2000}}\.[a-z0-9_-]{{8,2000}}\.[a-z0-9_-]*
    """
_HINTS = (
    *("://", "bearer", "basic", "passw", "passphrase", "secret", "token", "key", "akia", "asia"),
    *("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "hf_", "headway_", "sk-"),
    *("xox", "eyj"),
)
"""A text without any of these holds none of the shapes; most have none."""


def masked(text: str, secrets: Collection[str] = ()) -> str:
    """Return a text without what looks like a secret, and without these secrets.

    Example: `push to https://me:word@host failed` becomes `push to https://[masked]@host failed`.
    """
    for secret in secrets:
        if secret in text:
            text = text.replace(secret, MASK)
    if len(text) < _SHORTEST:
        return text
    lower = text.lower()
    if not any(hint in lower for hint in _HINTS):
        return text
    return _shapes().sub(_keep_what_names_it, text)


def masked_values(values: Mapping[str, Any], secrets: Collection[str] = ()) -> dict[str, Any]:
    """Return the fields of an event, or the entries of one of them, without secrets.

    Of a text with a name such as `api_key` nothing is kept.
    """
    return {name: masked_value(name, value, secrets) for name, value in values.items()}


def secrets_of(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of the variables that are called key, token, secret or password.

    The longest first: one may be a part of another.
    """
    found = {
        value
        for name, value in environment.items()
        if len(value) >= _SHORTEST and re.search(_PRIVATE_VARIABLE, name.upper())
    }
    return tuple(sorted(found, key=lambda value: (-len(value), value)))


def is_private(name: str) -> bool:
    """Return whether a variable or a field is called key, token, secret or password."""
    return _is_private(name) or re.search(_PRIVATE_VARIABLE, name.upper()) is not None


@lru_cache(maxsize=4096)
def _is_private(name: str) -> bool:
    return re.search(_PRIVATE_NAME, name.lower()) is not None


@cache
def _shapes() -> re.Pattern[str]:
    # Compiled when first needed: training processes import this module, and most need it never.
    return re.compile(_SHAPES, re.VERBOSE | re.IGNORECASE | re.DOTALL)


def masked_value(name: str, value: Any, secrets: Collection[str] = ()) -> Any:
    """Return one value that has a name, without secrets."""
    if isinstance(value, str):
        return MASK if value and _is_private(name) else masked(value, secrets)
    if isinstance(value, tuple | list):
        return type(value)(masked_value(name, item, secrets) for item in value)
    if isinstance(value, Mapping):
        return masked_values(value, secrets)
    return value


def _keep_what_names_it(found: re.Match[str]) -> str:
    if found["address"]:
        return f"{found['address']}{MASK}@"
    kept = found["scheme"] or found["name"] or found["option"] or found["token"] or ""
    return kept + MASK
