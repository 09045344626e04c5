"""Keeps records that are no events of this version, under a limit."""

import base64
import json
from typing import Any

from google.protobuf import json_format  # type: ignore[import-untyped]  # ships no types
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # as above

from headway.collector.otlp.bodies import TooLarge
from headway.redaction import masked, masked_value
from headway.storage.store import Quarantined

_LONGEST_IN_WORDS = 64 * 1024


class Quarantine:
    """The quarantined records of one request."""

    def __init__(self, received: int, limit: int) -> None:
        """Start without any; `received` is in UTC ns, `limit` in bytes."""
        self.records: list[Quarantined] = []
        self._received = received
        self._left = limit
        self._limit = limit

    def add(
        self, reason: str, group_type: Any, group: bytes, record_type: Any, record: bytes
    ) -> None:
        """Keep an encoded record and its encoded resource.

        Raises:
            TooLarge: these records hold more than the limit, each with its resource.
        """
        if len(group) + len(record) > _LONGEST_IN_WORDS:
            raw = {
                "resource_base64": base64.b64encode(group).decode(),
                "record_base64": base64.b64encode(record).decode(),
            }
        else:
            raw = {
                "resource": _in_words(group_type, group),
                "record": _in_words(record_type, record),
            }
        text = json.dumps(_without_secrets(raw), sort_keys=True)
        self._left -= len(text)
        if self._left < 0:
            raise TooLarge(
                f"the records to be quarantined hold more than {self._limit} bytes in all"
            )
        self.records.append(Quarantined(received=self._received, reason=reason, raw=text))


def _without_secrets(content: Any) -> Any:
    """Mask what looks like a secret in a record's JSON form, in which attributes are pairs."""
    if isinstance(content, list):
        return [_without_secrets(item) for item in content]
    if isinstance(content, dict):
        if isinstance(content.get("key"), str) and isinstance(content.get("value"), dict):
            kept = _without_secrets(content["value"])
            kept = {kind: masked_value(content["key"], item) for kind, item in kept.items()}
            return {**content, "value": kept}
        return {name: _without_secrets(item) for name, item in content.items()}
    return masked(content) if isinstance(content, str) else content


def _in_words(kind: Any, encoded: bytes) -> Any:
    try:
        return json_format.MessageToDict(kind.FromString(encoded))
    except (DecodeError, ValueError):
        return base64.b64encode(encoded).decode()
