"""OTLP requests become the envelopes that were sent, or quarantined records with a reason."""

import gzip
import json
import math
from contextlib import suppress

import pytest
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse

from headway.collector import otlp
from headway.events import Heartbeat, Note, RunConfigured, StepsSummary
from headway.storage.store import Quarantined
from otlp_requests import body, request
from records import PRODUCER, record, steps

ENVELOPES = [
    record(1, RunConfigured(labels={"team": "x", "spot": True, "priority": 3}, timeouts={})),
    record(2, Heartbeat(open_phases=("startup", "model"), last_step=None)),
    record(3, Heartbeat()),
    steps(4, 100),
    record(103, StepsSummary(first_step=5, num_steps=3, duration=9, loss=0.5), count=3),
]


def decode(
    content: bytes, content_type: str = otlp.PROTOBUF, encoding: str = "", limit: int = 10**6
) -> otlp.Decoded:
    return otlp.decode(
        content, content_type=content_type, encoding=encoding, limit=limit, received=77
    )


@pytest.mark.parametrize("encoding", ["", "identity", "gzip"])
def test_what_was_sent_as_protobuf_is_what_is_decoded(encoding: str) -> None:
    content = body(ENVELOPES)
    decoded = decode(gzip.compress(content) if encoding == "gzip" else content, encoding=encoding)
    assert decoded.envelopes == ENVELOPES
    assert decoded.quarantined == []
    assert decoded.size == len(content)


def test_what_was_sent_as_json_is_what_is_decoded() -> None:
    content = json_format.MessageToJson(request(ENVELOPES)).encode()
    assert decode(content, otlp.JSON).envelopes == ENVELOPES


def test_a_record_that_is_no_declared_event_is_quarantined_and_the_others_are_kept() -> None:
    message = request([record(number, Note(text="x")) for number in range(1, 6)])
    unknown, foreign, incomplete, absurd, _ = (
        group.scope_logs[0].log_records[0] for group in message.resource_logs
    )
    unknown.event_name = "headway.teleported"
    foreign.event_name = "my.app.event"
    del incomplete.attributes[:]
    absurd.time_unix_nano = 2**64 - 1
    decoded = decode(message.SerializeToString())
    assert decoded.envelopes == [record(5, Note(text="x"))]
    reasons = [item.reason for item in decoded.quarantined]
    assert [reason.split(";")[0] for reason in reasons] == [
        "unknown event 'teleported'",
        "event name 'my.app.event' is not in headway.*",
        "note: field 'text' is missing",
        "envelope: wall is out of range: 18446744073709551615",
    ]
    raw = json.loads(decoded.quarantined[0].raw)
    assert raw["record"]["eventName"] == "headway.teleported"
    assert PRODUCER in json.dumps(raw["resource"])
    assert decoded.quarantined[0].received == 77


def test_values_outside_the_declaration_are_quarantined() -> None:
    message = request([record(1, StepsSummary(first_step=1, num_steps=1, duration=1, loss=1.0))])
    (loss,) = (
        pair
        for pair in message.resource_logs[0].scope_logs[0].log_records[0].attributes
        if pair.key == "loss"
    )
    loss.value.double_value = math.nan
    decoded = decode(message.SerializeToString())
    assert decoded.envelopes == []
    assert "loss is not a finite number" in decoded.quarantined[0].reason


def test_a_body_that_inflates_beyond_the_limit_is_too_large() -> None:
    bomb = gzip.compress(bytes(10**7))
    with pytest.raises(otlp.TooLarge, match="more than 1000000 bytes"):
        decode(bomb, encoding="gzip")
    with pytest.raises(otlp.TooLarge):
        decode(bytes(101), limit=100)


@pytest.mark.parametrize(
    ("content", "content_type", "encoding"),
    [
        (b"\xff\xff\xff", otlp.PROTOBUF, ""),
        (b"no gzip", otlp.PROTOBUF, "gzip"),
        (gzip.compress(body(ENVELOPES))[:-9], otlp.PROTOBUF, "gzip"),
        (b"{", otlp.JSON, ""),
        (b"\xff", otlp.JSON, ""),
        (b'{"resourceLogs": 3}', otlp.JSON, ""),
        (b"[" * 5000, otlp.JSON, ""),
        (b"x", "text/plain", ""),
        (b"x", otlp.PROTOBUF, "zstd"),
    ],
)
def test_a_body_that_is_not_what_it_claims_is_malformed(
    content: bytes, content_type: str, encoding: str
) -> None:
    with pytest.raises(otlp.MalformedRequest):
        decode(content, content_type, encoding)


@given(content=st.binary(max_size=200), content_type=st.sampled_from([otlp.PROTOBUF, otlp.JSON]))
def test_no_body_breaks_the_decoder(content: bytes, content_type: str) -> None:
    with suppress(otlp.MalformedRequest):
        decode(content, content_type)


@given(data=st.data())
def test_no_damage_to_a_real_request_breaks_the_decoder(data: st.DataObject) -> None:
    content = bytearray(body(ENVELOPES[:3]))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with suppress(otlp.MalformedRequest):
        decode(bytes(content))


def test_the_answer_tells_how_many_records_were_quarantined_and_why() -> None:
    decoded = otlp.Decoded(
        envelopes=[],
        quarantined=[Quarantined(received=1, reason="unknown event 'x'", raw="{}")] * 2,
        size=1,
    )
    answer = ExportLogsServiceResponse.FromString(otlp.response(decoded, otlp.PROTOBUF))
    assert answer.partial_success.rejected_log_records == 2
    assert "unknown event 'x'" in answer.partial_success.error_message
    in_json = json.loads(otlp.response(decoded, otlp.JSON))
    assert in_json["partialSuccess"]["rejectedLogRecords"] == "2"
