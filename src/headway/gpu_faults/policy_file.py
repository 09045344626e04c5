"""The text of a site's own policy, TOML, as changes to the default policy.

name = "site"          # any name but the default's
version = "3"
unlisted = "reset"     # also: fatal, nonfatal

[xid]
63 = "reset"
"145.0" = "watch"      # sub-code 0 of an Xid of NVLink 5

[sxid]
20034 = "reset"

[recovery_action]
3 = "application"

[kind]                 # of gpu.fault events
gsp_heartbeat = "watch"
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from headway.events import GPU_FAULT_CLASSES, GPU_FAULT_KINDS
from headway.gpu_faults import nvlink5
from headway.gpu_faults.policy import DEFAULT_POLICY, Policy

_NAMES = ("name", "version")
_ALONE = ("fatal", "nonfatal", "unlisted")
_TABLES = ("xid", "sxid", "recovery_action", "kind")
_LONGEST_NAME = 64
_NUMBER = re.compile(r"\d{1,9}")
_SUB_CODE = re.compile(r"(\d{1,9})\.(\d{1,9})")
_DECIDED_BY_CODE = ("recovery_action", "xid_changed")


class PolicyError(ValueError):
    """A policy that cannot be used, with the value, the choices and the next step."""


def parse_policy(text: str) -> Policy:
    """Return the default policy with the changes that a file asks for, under the file's name.

    Raises:
        PolicyError: no TOML, no name of its own, an unknown entry, code or class.
    """
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PolicyError(f"it is no TOML: {error}") from error
    known = (*_NAMES, *_ALONE, *_TABLES)
    for entry in content:
        if entry not in known:
            raise PolicyError(f"unknown entry {entry!r}; known: {', '.join(known)}")
    name, version = (_name(content, entry) for entry in _NAMES)
    if name == DEFAULT_POLICY.name:
        raise PolicyError(
            f"the name {name!r} is the default policy's; give this one a name of its own, such as "
            "the site's, so that a stored fault says who judged it"
        )
    xids, sub_codes = _xids(_table(content, "xid"))
    return replace(
        DEFAULT_POLICY,
        name=name,
        version=version,
        xids={**DEFAULT_POLICY.xids, **xids},
        sub_codes=sub_codes,
        sxids=_numbers(_table(content, "sxid"), "sxid"),
        recovery_actions={
            **DEFAULT_POLICY.recovery_actions,
            **_numbers(_table(content, "recovery_action"), "recovery_action"),
        },
        kinds={**DEFAULT_POLICY.kinds, **_kinds(_table(content, "kind"))},
        **{entry: _class(content[entry], entry) for entry in _ALONE if entry in content},
    )


def _name(content: Mapping[str, Any], entry: str) -> str:
    value = content.get(entry)
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST_NAME:
        given = "nothing" if value is None else repr(value)
        raise PolicyError(
            f"{entry} must be a text of 1 to {_LONGEST_NAME} characters, got {given}; "
            f'write for example {entry} = "{"site" if entry == "name" else "1"}"'
        )
    return value.strip()


def _table(content: Mapping[str, Any], entry: str) -> Mapping[str, Any]:
    table = content.get(entry, {})
    if not isinstance(table, dict):
        raise PolicyError(f"{entry} must be a table, got {table!r}; begin it with [{entry}]")
    return table


def _xids(table: Mapping[str, Any]) -> tuple[dict[int, str], dict[tuple[int, int], str]]:
    xids: dict[int, str] = {}
    sub_codes: dict[tuple[int, int], str] = {}
    for code, value in table.items():
        where = f"{code!r} in [xid]"
        pair = _SUB_CODE.fullmatch(code)
        if pair is not None and int(pair[1]) in nvlink5.XIDS:
            sub_codes[int(pair[1]), int(pair[2])] = _class(value, where)
        elif _NUMBER.fullmatch(code):
            xids[int(code)] = _class(value, where)
        else:
            raise PolicyError(
                f"{where} is no Xid; write a number such as 63, or an Xid of NVLink 5 "
                f"({nvlink5.XIDS[0]} to {nvlink5.XIDS[-1]}) with its sub-code in quotes, "
                'such as "145.0"'
            )
    return xids, sub_codes


def _numbers(table: Mapping[str, Any], entry: str) -> dict[int, str]:
    found = {}
    for number, value in table.items():
        if not _NUMBER.fullmatch(number):
            raise PolicyError(f"{number!r} in [{entry}] is no number; write one such as 3")
        found[int(number)] = _class(value, f"{number!r} in [{entry}]")
    return found


def _kinds(table: Mapping[str, Any]) -> dict[str, str]:
    known = [kind for kind in GPU_FAULT_KINDS if kind not in _DECIDED_BY_CODE]
    for kind in table:
        if kind not in known:
            raise PolicyError(f"unknown kind {kind!r} in [kind]; known: {', '.join(known)}")
    return {kind: _class(value, f"{kind!r} in [kind]") for kind, value in table.items()}


def _class(value: Any, where: str) -> str:
    if value not in GPU_FAULT_CLASSES:
        raise PolicyError(
            f"unknown class {value!r} for {where}; known: {', '.join(GPU_FAULT_CLASSES)}"
        )
    return str(value)
