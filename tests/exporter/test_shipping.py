"""Shipping against a real HTTP server: what is acknowledged, halved, set aside or tried again."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.rpc import status_pb2 as rpc

from headway import step_blocks, wire
from headway.events import Envelope, Event, Fault, Heartbeat, Note, RunConfigured, Steps
from headway.exporter.shipping import NotTakenError, Shipment, Shipper
from otlp_endpoint import OtlpEndpoint, otlp_endpoint


@pytest.fixture
def shipper(endpoint: OtlpEndpoint, tmp_path: Path) -> Iterator[Shipper]:
    built = Shipper(endpoint=endpoint.address, token=None, refused=tmp_path / "refused")
    yield built
    built.close()


def envelope(
    event: Event, first: int = 1, last: int | None = None, producer: str = "a"
) -> Envelope:
    return Envelope(
        producer=producer * 32,
        anchor=1_700_000_000_000_000_000,
        first_sequence=first,
        last_sequence=first if last is None else last,
        run="llama-7",
        attempt="0123456789abcdef",
        rank=3,
        node="n1",
        boot_id="b",
        wall=1_700_000_000_000_000_000 + first,
        monotonic=first,
        event=event,
    )


def steps(first: int, last: int) -> Envelope:
    packed = step_blocks.pack(step_blocks.Step(n, 1, 0, 0.5, n) for n in range(first, last + 1))
    event = Steps(first_step=first, version=step_blocks.VERSION, packed=packed)
    return envelope(event, first, last)


def test_every_kind_of_value_arrives_as_it_was_sent(
    endpoint: OtlpEndpoint, shipper: Shipper
) -> None:
    sent = [
        envelope(
            RunConfigured(target_step=9, labels={"team": "a", "gpus": 8, "x": 0.5, "y": True})
        ),
        envelope(Heartbeat(open_phases=("step", "data_wait")), 2),
        envelope(Heartbeat(), 3),
        envelope(Fault(kind="exception", message="\u00fcber"), 4),
        steps(5, 104),
        envelope(Note(text="other producer"), producer="b"),
    ]
    assert shipper.ship(sent) == Shipment(acknowledged=105)
    assert endpoint.accepted == sent
    assert len(endpoint.requests) == 1
    assert endpoint.headers[0]["content-encoding"] == "gzip"


def test_text_that_is_no_unicode_is_escaped_instead_of_lost(
    endpoint: OtlpEndpoint, shipper: Shipper
) -> None:
    shipper.ship([envelope(Note(text="file \udcff"))])
    assert endpoint.accepted[0].event == Note(text="file \\udcff")


def test_the_token_travels_as_a_bearer_token(endpoint: OtlpEndpoint, tmp_path: Path) -> None:
    shipper = Shipper(endpoint=endpoint.address + "/", token="s3cret", refused=tmp_path)  # noqa: S106
    shipper.ship([envelope(Note(text="x"))])
    shipper.close()
    assert endpoint.headers[0]["authorization"] == "Bearer s3cret"


def test_a_batch_that_is_too_large_is_halved_down_to_single_steps(
    endpoint: OtlpEndpoint, shipper: Shipper
) -> None:
    endpoint.answer = lambda batch: (
        413 if sum(item.last_sequence - item.first_sequence for item in batch) >= 200 else 200
    )
    assert shipper.ship([envelope(Note(text="x")), steps(2, 1001)]) == Shipment(acknowledged=1001)
    arrived = endpoint.accepted
    assert [item.first_sequence for item in arrived[1:]] == [
        item.last_sequence + 1 for item in arrived[:-1]
    ]
    assert (arrived[0].first_sequence, arrived[-1].last_sequence) == (1, 1001)


def test_one_record_that_is_too_large_is_set_aside(
    endpoint: OtlpEndpoint, shipper: Shipper
) -> None:
    large = envelope(Note(text="x" * 1000), 2)
    endpoint.answer = lambda batch: 413 if large in batch else 200
    sent = [envelope(Note(text="1")), large, envelope(Note(text="3"), 3)]
    assert shipper.ship(sent) == Shipment(acknowledged=2, refused=1)
    assert set_aside(shipper) == [large]


def test_an_unreadable_batch_is_set_aside_for_that_producer_alone(
    endpoint: OtlpEndpoint, shipper: Shipper, caplog: pytest.LogCaptureFixture
) -> None:
    bad = [envelope(Note(text="x")), steps(2, 11)]
    good = [envelope(Note(text="y"), producer="b")]
    endpoint.answer = lambda batch: 400 if bad[0] in batch else 200
    assert shipper.ship(bad + good) == Shipment(acknowledged=1, refused=11)
    assert endpoint.accepted == good
    assert set_aside(shipper) == bad
    assert "refused 11 records" in caplog.text


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "does not accept this token"),
        (404, "check that it is a Headway collector"),
        (302, "check that it is a Headway collector"),
        (500, "see its log"),
        (503, "is behind"),
    ],
)
def test_any_other_answer_is_tried_again_later(
    endpoint: OtlpEndpoint, shipper: Shipper, status: int, words: str
) -> None:
    endpoint.answer = lambda batch: status
    with pytest.raises(NotTakenError, match=words):
        shipper.ship([envelope(Note(text="x"))])
    assert len(endpoint.requests) == 1
    assert not shipper.refused.exists()


@pytest.mark.parametrize(
    ("kind", "body", "words"),
    [
        (
            "application/x-protobuf",
            rpc.Status(code=14, message="the disk is full. Make room.").SerializeToString(),
            "(503: the disk is full. Make room.)",
        ),
        ("application/x-protobuf", b"\x0a\xff", "(503: Service Unavailable)"),
        ("application/json; charset=utf-8", b'{"message": "no  room"}', "(503: no room)"),
        ("application/json", b'{"error": "No.", "next": "Wait."}', "(503: No. Wait.)"),
        ("application/json", b"[1]", "(503: [1])"),
        ("text/html", b"<h1>out</h1>", "(503: <h1>out</h1>)"),
        ("text/plain", b"", "(503: Service Unavailable)"),
    ],
)
def test_what_the_collector_says_is_repeated_as_text(
    endpoint: OtlpEndpoint, shipper: Shipper, kind: str, body: bytes, words: str
) -> None:
    endpoint.answer = lambda batch: (503, {"content-type": kind}, body)
    with pytest.raises(NotTakenError) as caught:
        shipper.ship([envelope(Note(text="x"))])
    assert str(caught.value).endswith(words)


def test_the_collector_says_when_to_come_back(endpoint: OtlpEndpoint, shipper: Shipper) -> None:
    endpoint.answer = lambda batch: (503, {"retry-after": "7"})
    with pytest.raises(NotTakenError) as caught:
        shipper.ship([envelope(Note(text="x"))])
    assert caught.value.retry_after == 7.0


def test_an_absent_collector_is_named_with_the_next_step(tmp_path: Path) -> None:
    with otlp_endpoint() as gone:
        address = gone.address
    shipper = Shipper(endpoint=address, token=None, refused=tmp_path)
    with pytest.raises(NotTakenError, match=f"no collector answers at {address}.*headway collect"):
        shipper.ship([envelope(Note(text="x"))])
    shipper.close()


def set_aside(shipper: Shipper) -> list[Envelope]:
    (path,) = shipper.refused.iterdir()
    return [wire.from_json(json.loads(line)) for line in path.read_text().splitlines()]
