"""Bodies of requests that are damaged in every way that a sender, a network or a foe may think of.

All of it follows from a seed, so that an input that did harm can be made again.
"""

import gzip
import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)

from headway.collector.otlp.bodies import JSON, PROTOBUF
from headway.events import Heartbeat, Note, PhaseEnded, RunConfigured, Steps, StepsSummary
from headway.wire import in_columns
from otlp_requests import request
from records import record, steps
from span_requests import SPAN, spans

SIGNALS = ("logs", "traces", "metrics")


@dataclass(frozen=True, slots=True)
class Input:
    """One body with what its sender says of it."""

    signal: str
    content_type: str
    encoding: str
    content: bytes


def _metrics() -> ExportMetricsServiceRequest:
    message = ExportMetricsServiceRequest()
    metric = message.resource_metrics.add().scope_metrics.add().metrics.add(name="loss")
    metric.gauge.data_points.add(as_double=2.0)
    return message


def _logs() -> list[object]:
    rows = steps(4, 40)
    assert isinstance(rows.event, Steps)
    columns = replace(rows, event=in_columns(rows.event))
    return [
        request(
            [
                record(1, RunConfigured(labels={"team": "x", "spot": True}, timeouts={"a": 1})),
                record(2, Heartbeat(open_phases=("startup", "model"), last_step=3)),
                record(3, PhaseEnded(phase="startup", duration=5)),
                columns,
            ]
        ),
        request([record(number, Note(text=f"note {number}")) for number in range(1, 12)]),
        request([record(9, StepsSummary(first_step=5, num_steps=3, duration=9), count=3)]),
    ]


_SEEDS = {
    "logs": _logs(),
    "traces": [
        spans(SPAN),
        spans({**SPAN, "name": "nvrx.restart.cycle", "error": "failed"}, {**SPAN, "name": "GET"}),
    ],
    "metrics": [_metrics()],
}
_BODIES = {
    (signal, form): [
        (
            message.SerializeToString()  # type: ignore[attr-defined]  # protobuf ships no types
            if form == PROTOBUF
            else json_format.MessageToJson(message, indent=None).encode()
        )
        for message in messages
    ]
    for signal, messages in _SEEDS.items()
    for form in (PROTOBUF, JSON)
}
_INTERESTING = (
    b"\x00",
    b"\x7f",
    b"\x80",
    b"\xff",
    b"\xff" * 10,
    b"\x80" * 9 + b"\x01",
    b"\x0a\x00",
)
_JSON_WORDS = (b"null", b"[]", b"{}", b'""', b"-1", b"1e999", b"NaN", b'"\\ud800"', b"[" * 200)


def make(seed: int) -> Input:
    """Return the input of a seed."""
    chance = random.Random(seed)  # noqa: S311  # damage, no secrets
    signal = chance.choice(SIGNALS)
    form = JSON if chance.random() < 0.25 else PROTOBUF
    content = chance.choice(_BODIES[signal, form])
    words = _INTERESTING if form == PROTOBUF else _JSON_WORDS
    for _ in range(chance.choice((0, 1, 1, 1, 2, 3, 8))):
        content = chance.choice(_DAMAGES)(content, chance, words)
    encoding = ""
    if chance.random() < 0.2:
        encoding, content = "gzip", gzip.compress(content, 1)
        if chance.random() < 0.5:
            content = chance.choice(_DAMAGES)(content, chance, _INTERESTING)
    return Input(signal, form, encoding, content)


def _place(content: bytes, chance: random.Random) -> int:
    return chance.randrange(len(content) + 1)


def _flip(content: bytes, chance: random.Random, _: tuple[bytes, ...]) -> bytes:
    if not content:
        return content
    at = chance.randrange(len(content))
    return content[:at] + bytes([content[at] ^ 1 << chance.randrange(8)]) + content[at + 1 :]


def _replace(content: bytes, chance: random.Random, words: tuple[bytes, ...]) -> bytes:
    at, word = _place(content, chance), chance.choice(words)
    return content[:at] + word + content[at + len(word) :]


def _insert(content: bytes, chance: random.Random, words: tuple[bytes, ...]) -> bytes:
    at = _place(content, chance)
    return content[:at] + chance.choice(words) + content[at:]


def _cut(content: bytes, chance: random.Random, _: tuple[bytes, ...]) -> bytes:
    return content[: _place(content, chance)]


def _drop(content: bytes, chance: random.Random, _: tuple[bytes, ...]) -> bytes:
    begin, end = sorted((_place(content, chance), _place(content, chance)))
    return content[:begin] + content[end:]


def _repeat(content: bytes, chance: random.Random, _: tuple[bytes, ...]) -> bytes:
    begin, end = sorted((_place(content, chance), _place(content, chance)))
    return content[:end] + content[begin:end] * chance.randrange(1, 5) + content[end:]


def _noise(content: bytes, chance: random.Random, _: tuple[bytes, ...]) -> bytes:
    return chance.randbytes(chance.randrange(64)) + content[_place(content, chance) :]


_DAMAGES: tuple[Callable[[bytes, random.Random, tuple[bytes, ...]], bytes], ...] = (
    _flip,
    _flip,
    _replace,
    _insert,
    _cut,
    _drop,
    _repeat,
    _noise,
)
