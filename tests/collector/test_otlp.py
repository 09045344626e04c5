"""OTLP requests become the envelopes that were sent, or quarantined records with a reason."""

import base64
import gzip
import json
import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import pytest
from google.protobuf import json_format
from google.protobuf.message import DecodeError
from hypothesis import assume, given
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from event_strategies import envelopes
from headway import wire
from headway.blocks import Block
from headway.collector.otlp import replies
from headway.collector.otlp.attributes import LONGEST_NAME, LONGEST_TEXT, MOST_NESTED, plain
from headway.collector.otlp.bodies import (
    JSON,
    PROTOBUF,
    Body,
    MalformedRequest,
    TooLarge,
    UnknownForm,
    check_form,
)
from headway.collector.otlp.decoded import Decoded
from headway.collector.otlp.logs import decode_logs
from headway.collector.otlp.messages import MOST_MESSAGES
from headway.events import (
    Envelope,
    Heartbeat,
    Note,
    PhaseBegan,
    PhaseEnded,
    RunConfigured,
    RunStarted,
    StepsSummary,
)
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
    content: bytes, content_type: str = PROTOBUF, encoding: str = "", limit: int = 10**6
) -> Decoded:
    check_form(content_type, encoding)
    received = Body(encoding, limit)
    for at in range(0, len(content), 1000):
        received.feed(content[at : at + 1000])
    return decode_logs(received.whole(), content_type=content_type, limit=limit, received=77)


@pytest.mark.parametrize("encoding", ["", "identity", "gzip"])
def test_what_was_sent_as_protobuf_is_what_is_decoded(encoding: str) -> None:
    content = body(ENVELOPES)
    decoded = decode(gzip.compress(content) if encoding == "gzip" else content, encoding=encoding)
    assert decoded.envelopes == ENVELOPES
    assert decoded.quarantined == []
    assert decoded.size == len(content)


def test_what_was_sent_as_json_is_what_is_decoded() -> None:
    content = json_format.MessageToJson(request(ENVELOPES)).encode()
    assert decode(content, JSON).envelopes == ENVELOPES


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
        "note: field 'text' is missing",
        "envelope: wall is out of range: 18446744073709551615",
    ]
    raw = json.loads(decoded.quarantined[0].raw)
    assert raw["record"]["eventName"] == "headway.teleported"
    assert PRODUCER in json.dumps(raw["resource"])
    assert decoded.quarantined[0].received == 77
    assert decoded.num_refused == 1
    assert "headway.*" in decoded.refusal
    assert "my.app.event" not in str(decoded.quarantined)


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
    with pytest.raises(TooLarge, match="more than 1000000 bytes"):
        decode(bomb, encoding="gzip")
    with pytest.raises(TooLarge):
        decode(bytes(101), limit=100)


@pytest.mark.parametrize(
    ("content", "content_type", "encoding"),
    [
        (b"\xff\xff\xff", PROTOBUF, ""),
        (b"no gzip", PROTOBUF, "gzip"),
        (gzip.compress(body(ENVELOPES))[:-9], PROTOBUF, "gzip"),
        (b"{", JSON, ""),
        (b"\xff", JSON, ""),
        (b'{"resourceLogs": 3}', JSON, ""),
        (b"[" * 5000, JSON, ""),
    ],
)
def test_a_body_that_is_not_what_it_claims_is_malformed(
    content: bytes, content_type: str, encoding: str
) -> None:
    with pytest.raises(MalformedRequest):
        decode(content, content_type, encoding)


@pytest.mark.parametrize(("content_type", "encoding"), [("text/plain", ""), (PROTOBUF, "zstd")])
def test_another_content_type_or_encoding_is_not_read(content_type: str, encoding: str) -> None:
    with pytest.raises(UnknownForm, match=r"known: "):
        decode(b"x", content_type, encoding)


def test_a_gzip_body_may_have_several_members() -> None:
    first, second = body(ENVELOPES[:2]), body(ENVELOPES[2:])
    decoded = decode(gzip.compress(first) + gzip.compress(second), encoding="gzip")
    assert decoded.envelopes == ENVELOPES


def test_records_of_many_producers_in_one_request_keep_their_own_identity() -> None:
    sent = [
        record(number, Note(text="same"), producer=f"{number % 3:032x}", run=f"run-{number % 2}")
        for number in range(60)
    ]
    assert decode(body(sent)).envelopes == sent


def test_more_records_than_a_request_may_hold_are_too_large() -> None:
    empty = b"\x12\x00" * (MOST_MESSAGES + 1)
    scope = b"\x12" + varint(len(empty)) + empty
    with pytest.raises(TooLarge, match="more than 100000 records"):
        decode(b"\x0a" + varint(len(scope)) + scope)


def test_what_would_grow_a_lot_is_not_built() -> None:
    values = AnyValue(array_value=ArrayValue(values=[AnyValue()] * MOST_NESTED))
    message = request([record(1, Note(text="x")), record(2, Note(text="y"))])
    big = message.resource_logs[0].scope_logs[0].log_records[0]
    next(one for one in big.attributes if one.key == "text").value.CopyFrom(values)
    decoded = decode(message.SerializeToString())
    assert decoded.envelopes == [record(2, Note(text="y"))]
    assert "text must be str, got a list or map of more than" in decoded.quarantined[0].reason
    del big.attributes[:]
    big.attributes.extend(KeyValue(key=f"key of no meaning {n:060d}") for n in range(1001))
    with pytest.raises(MalformedRequest, match="more than 1000 attributes"):
        decode(message.SerializeToString())


def test_a_long_text_is_no_growth_and_its_beginning_is_kept() -> None:
    sent = [record(1, Note(text="x" * 200_000))]
    assert decode(body(sent)).envelopes == [record(1, Note(text="x" * LONGEST_TEXT))]


@pytest.mark.parametrize(
    "sent",
    [
        record(1, Note(text="x"), run="x" * (LONGEST_NAME + 1)),
        record(1, RunStarted(run_name="x" * (LONGEST_NAME + 1))),
        record(1, PhaseBegan(phase="x" * (LONGEST_NAME + 1))),
    ],
)
def test_what_would_be_a_long_label_is_quarantined(sent: Envelope) -> None:
    decoded = decode(body([sent]))
    assert decoded.envelopes == []
    assert f"got a name of more than {LONGEST_NAME} characters" in decoded.quarantined[0].reason


def test_what_looks_like_a_secret_is_masked_in_events_and_in_quarantine() -> None:
    message = request(
        [
            record(1, Note(text="https://me:s3cretWord99@host")),
            record(2, RunConfigured(links={"api_key": "s3cretWord99", "lr": 0.1})),
        ]
    )
    odd = message.resource_logs[0].scope_logs[0].log_records.add(event_name="headway.teleported")
    odd.body.string_value = "Authorization: Bearer s3cretWord99"
    odd.attributes.add(key="wandb.api_key").value.string_value = "s3cretWord99"
    decoded = decode(message.SerializeToString())
    assert decoded.envelopes == [
        record(1, Note(text="https://[masked]@host")),
        record(2, RunConfigured(links={"api_key": "[masked]", "lr": 0.1})),
    ]
    assert "s3cretWord99" not in decoded.quarantined[0].raw
    assert decoded.quarantined[0].raw.count("[masked]") == 2


def test_quarantined_records_that_repeat_a_large_resource_are_too_large() -> None:
    message = request([record(1, Note(text="x"))])
    group = message.resource_logs[0]
    group.resource.attributes.add(key="large").value.string_value = "x" * 50_000
    for _ in range(40):
        group.scope_logs[0].log_records.add(event_name="headway.teleported")
    with pytest.raises(TooLarge, match="to be quarantined hold more than 1000000 bytes"):
        decode(message.SerializeToString())


def test_a_large_quarantined_record_is_kept_as_bytes() -> None:
    message = request([record(1, Note(text="x" * 100_000))])
    sent = message.resource_logs[0].scope_logs[0].log_records[0]
    sent.event_name = "headway.teleported"
    (kept,) = decode(message.SerializeToString()).quarantined
    assert LogRecord.FromString(base64.b64decode(json.loads(kept.raw)["record_base64"])) == sent


def by_protobuf(content: bytes) -> tuple[list[Envelope], list[str]]:
    """Read a request as protobuf's own objects, slowly: what must come out."""
    envelopes, reasons = [], []
    for group in ExportLogsServiceRequest.FromString(content).resource_logs:
        shared = {pair.key: plain(pair.value) for pair in group.resource.attributes}
        for found in (one for scope in group.scope_logs for one in scope.log_records):
            if not found.event_name.startswith(wire.PREFIX):
                continue
            own = {pair.key: plain(pair.value) for pair in found.attributes}
            values = {name: shared.get(wire.PREFIX + name) for name in wire.PRODUCER_FIELDS}
            values |= {name: own.get(wire.PREFIX + name) for name in wire.RECORD_FIELDS}
            values["wall"] = found.time_unix_nano
            try:
                name = found.event_name.removeprefix(wire.PREFIX)
                envelopes.append(wire.build(values, name, own))
            except wire.WireError as error:
                reasons.append(str(error))
    return envelopes, reasons


@given(st.lists(envelopes(), min_size=1, max_size=5))
def test_any_event_is_read_as_protobuf_reads_it(sent: list[Envelope]) -> None:
    content = body(sent)
    decoded = decode(content)
    assert (decoded.envelopes, [item.reason for item in decoded.quarantined]) == by_protobuf(
        content
    )
    assert decoded.envelopes == sent


@given(data=st.data())
def test_a_damaged_request_is_read_as_protobuf_reads_it_or_refused(data: st.DataObject) -> None:
    content = bytearray(body(ENVELOPES[:3]))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        expected = by_protobuf(bytes(content))
    except DecodeError:
        with suppress(MalformedRequest):
            decode(bytes(content))
        return
    try:
        decoded = decode(bytes(content))
    except MalformedRequest as error:
        assume("wire type" not in str(error))  # a group, which proto3 has not
        raise
    assert (decoded.envelopes, [item.reason for item in decoded.quarantined]) == expected


@st.composite
def similar(draw: st.DrawFn) -> bytes:
    """Return a request with many records that are nearly alike, of one producer."""
    few = draw(st.lists(envelopes(), min_size=1, max_size=3))
    numbers = draw(st.lists(st.integers(0, 2**62), min_size=1, max_size=40))
    start = draw(st.integers(0, 2**40))
    numbers += range(start, start + draw(st.integers(0, 60)))
    in_one_scope = draw(st.booleans())
    message = ExportLogsServiceRequest()
    group = message.resource_logs.add()
    for number in numbers:
        envelope = few[number % len(few)]
        count = envelope.last_sequence - envelope.first_sequence
        changed = replace(
            envelope, first_sequence=number, last_sequence=number + count, monotonic=number // 3
        )
        (sent,) = request([changed]).resource_logs
        group.resource.CopyFrom(sent.resource)
        if not (in_one_scope and group.scope_logs):
            group.scope_logs.add()
        group.scope_logs[-1].log_records.extend(sent.scope_logs[0].log_records)
    return message.SerializeToString()


def in_any_order(found: Sequence[Envelope]) -> list[str]:
    """Return records told apart from each other; those that are alike come out together."""
    return sorted(map(repr, found))


@given(similar())
def test_records_that_are_alike_are_read_as_protobuf_reads_them(content: bytes) -> None:
    decoded = decode(content)
    expected, reasons = by_protobuf(content)
    assert in_any_order(decoded.envelopes) == in_any_order(expected)
    assert [item.reason for item in decoded.quarantined] == reasons


@pytest.mark.slow
@given(content=similar(), data=st.data())
def test_one_damaged_record_among_others_is_read_as_protobuf_reads_it(
    content: bytes, data: st.DataObject
) -> None:
    damaged = bytearray(content)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        expected, reasons = by_protobuf(bytes(damaged))
    except DecodeError:
        with suppress(MalformedRequest):
            decode(bytes(damaged))
        return
    try:
        decoded = decode(bytes(damaged))
    except MalformedRequest as error:
        assume("wire type" not in str(error))  # a group, which proto3 has not
        raise
    assert in_any_order(decoded.envelopes) == in_any_order(expected)
    assert [item.reason for item in decoded.quarantined] == reasons


def test_many_records_of_one_kind_stay_together_as_columns() -> None:
    sent = [
        record(number, PhaseEnded(phase="evaluation", duration=number))
        for number in range(1000, 1100)
    ]
    message = request(sent)
    records = message.resource_logs[0].scope_logs[0].log_records
    for group in message.resource_logs[1:]:
        records.extend(group.scope_logs[0].log_records)
    del message.resource_logs[1:]
    (block,) = decode(message.SerializeToString()).parts
    assert isinstance(block, Block)
    assert block.envelopes() == sent


def test_secrets_in_records_that_are_alike_are_masked_too() -> None:
    sent = [record(number, Note(text="password=s3cretWord99")) for number in range(1000, 1100)]
    found = decode(body(sent)).envelopes
    assert len(found) == len(sent)
    assert "s3cretWord99" not in repr(found)


@given(content=st.binary(max_size=200), content_type=st.sampled_from([PROTOBUF, JSON]))
def test_no_body_breaks_the_decoder(content: bytes, content_type: str) -> None:
    with suppress(MalformedRequest):
        decode(content, content_type)


def test_the_answer_tells_how_many_records_were_not_taken_and_why() -> None:
    decoded = Decoded(
        parts=[],
        quarantined=[Quarantined(received=1, reason="unknown event 'x'", raw="{}")] * 2,
        size=1,
        num_refused=3,
        refusal="only ours",
    )
    found = replies.stored(decoded, ExportLogsServiceResponse(), "rejected_log_records", PROTOBUF)
    answer = ExportLogsServiceResponse.FromString(found)
    assert answer.partial_success.rejected_log_records == 5
    words = "quarantined: unknown event 'x'; refused 3: only ours"
    assert answer.partial_success.error_message == words
    found = replies.stored(decoded, ExportLogsServiceResponse(), "rejected_log_records", JSON)
    assert json.loads(found)["partialSuccess"]["rejectedLogRecords"] == "5"


def varint(number: int) -> bytes:
    """Encode a number as protobuf does."""
    found = []
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])
