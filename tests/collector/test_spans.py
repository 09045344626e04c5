"""Each kind of span tells the events that the table says, whenever and however often it comes."""

from collections.abc import Mapping
from typing import Any

import pytest

from headway import step_blocks, wire
from headway.collector import spans
from headway.collector.spans import RULES, Told
from headway.events import (
    AttemptEnded,
    AttemptStarted,
    CheckpointFinalized,
    CheckpointScheduled,
    Event,
    Fault,
    Health,
    PhaseEnded,
    RestartBudget,
    RestartPhase,
    RunStarted,
)
from headway.exporter.identity import attempt_id
from headway.ledger import Timeline
from records import ANCHOR, SECOND, record

TRAINER = {"nemo.run.id": "llama-1", "dl.rank": "3", "nvrx.cycle": "2", "host.name": "n1"}
AGENT = {"nemo.run.id": "llama-1", "service.name": "nvrx.ft_launcher", "nvrx.node": "n1"}
START, END = ANCHOR + 10 * SECOND, ANCHOR + 14 * SECOND


def told(name: str, error: str | None = None, **changed: Any) -> Told:
    resource = TRAINER if RULES[name].of_rank else AGENT
    given: dict[str, Any] = {
        "name": name,
        "trace_id": "ab" * 16,
        "span_id": "cd" * 8,
        "start": START,
        "end": END,
        "error": error,
        "resource": resource,
        "attributes": {},
    }
    return Told(**given | changed)


def found(name: str, attributes: Mapping[str, Any] | None = None, **more: Any) -> list[Event]:
    return [one.event for one in spans.events(told(name, attributes=attributes or {}, **more))]


def phase(name: str) -> list[Event]:
    return [PhaseEnded(phase=name, duration=4 * SECOND)]


def restart(name: str) -> list[Event]:
    return [RestartPhase(layer="launcher", phase=name, state=state) for state in ("began", "ended")]


PLAIN = {
    "nvrx.restart.rendezvous": restart("rendezvous"),
    "nvrx.restart.worker_launch": restart("spawn"),
    "nvrx.restart.teardown": restart("stop_workers"),
    "nvrx.restart.await_round": restart("wait_nodes"),
    "nvrx.ft.rendezvous": restart("rendezvous"),
    "nvrx.ft.worker_start": restart("spawn"),
    "nvrx.ft.teardown": restart("stop_workers"),
    "nvrx.ft.round_wait": restart("wait_nodes"),
    "nvrx.ckpt.save.shm_drain": phase("checkpoint_save"),
    "nvrx.ckpt.save.stage": phase("checkpoint_save"),
    "nvrx.ckpt.save.completion_sync": phase("checkpoint_save"),
    "megatron.startup.arg_parse": phase("startup"),
    "megatron.startup.inprocess_setup": phase("startup"),
    "megatron.startup.in_job_setup": phase("startup"),
    "megatron.startup.initialize_megatron": phase("startup"),
    "megatron.startup.jit_fusion_options": phase("startup"),
    "megatron.startup.dataloader": phase("startup"),
    "megatron.startup.model_init": phase("model"),
    "megatron.startup.cuda_graph_capture": phase("warmup"),
    "megatron.startup.weight_hash_check": phase("warmup"),
    "megatron.startup.sniff_test": phase("warmup"),
    "megatron.model_init": phase("model"),
    "megatron.load_checkpoint": phase("checkpoint_load"),
    "megatron.checkpoint.load": phase("checkpoint_load"),
    "megatron.checkpoint.exposed_save": phase("checkpoint_save"),
    "megatron.checkpoint.save.finalize": phase("checkpoint_save"),
    "megatron.checkpoint.exit_finalize": phase("checkpoint_save"),
    "megatron.evaluate": phase("evaluation"),
}
SPECIAL = {
    *(f"nvrx.{prefix}.{name}" for prefix in ("restart", "ft") for name in ("cycle", "fault")),
    "nvrx.restart.health_check",
    "nvrx.ft.health_check",
    "nvrx.restart.excluded",
    "nvrx.ckpt.save.schedule",
    "nvrx.ckpt.save.finalize",
    "megatron.startup.imports",
    "megatron.pretrain",
    "megatron.checkpoint.save",
    "megatron.save_checkpoint",
    "megatron.train.iteration",
    "megatron.train_step",
}


def test_every_kind_of_span_is_tested() -> None:
    assert PLAIN.keys() | SPECIAL == RULES.keys()


@pytest.mark.parametrize("name", PLAIN)
def test_a_span_tells_one_phase(name: str) -> None:
    assert found(name) == PLAIN[name]


@pytest.mark.parametrize("name", ["megatron.train.iteration", "megatron.train_step"])
def test_an_iteration_is_a_step(name: str) -> None:
    (envelope,) = spans.events(told(name, attributes={"megatron.iteration": 7}))
    event: Any = envelope.event
    (step,) = step_blocks.unpack(event.version, event.packed)
    assert (event.first_step, step.start, step.duration) == (7, 0, 4 * SECOND)
    assert envelope.anchor + envelope.monotonic == END
    assert (envelope.run, envelope.rank, envelope.node) == ("llama-1", 3, "n1")
    with pytest.raises(wire.WireError, match="'first_step' is missing"):
        found(name)


@pytest.mark.parametrize("name", ["megatron.checkpoint.save", "megatron.save_checkpoint"])
def test_a_save_is_a_phase_and_a_scheduled_checkpoint(name: str) -> None:
    scheduled = CheckpointScheduled(checkpoint="iter_0000500", step=500, blocking=4 * SECOND)
    assert found(name, {"megatron.iteration": 500}) == [*phase("checkpoint_save"), scheduled]
    assert found(name) == phase("checkpoint_save")


def test_an_asynchronous_save_is_durable_once_it_is_finalized() -> None:
    assert found("nvrx.ckpt.save.schedule", {"nvrx.iteration": 500})[1:] == [
        CheckpointScheduled(checkpoint="iter_0000500", step=500, blocking=4 * SECOND)
    ]
    assert found("nvrx.ckpt.save.finalize", {"nvrx.iteration": 500})[1:] == [
        CheckpointFinalized(checkpoint="iter_0000500", step=500)
    ]
    failed = found("nvrx.ckpt.save.finalize", {"nvrx.iteration": 500}, error="disk full")
    assert failed == [PhaseEnded(phase="checkpoint_save", duration=4 * SECOND, error="disk full")]


def test_a_first_span_of_a_trainer_begins_its_attempt() -> None:
    began = AttemptStarted(layer="launcher", launcher_round=2)
    assert found("megatron.startup.imports") == [began, *phase("import")]
    assert found("megatron.pretrain") == [began]
    without = {**TRAINER, "nvrx.cycle": None, "dl.world_size": 8, "slurm.job_id": 77}
    assert found("megatron.pretrain", resource=without) == [
        AttemptStarted(layer="scheduler", world_size=8, scheduler_job="77")
    ]


@pytest.mark.parametrize("prefix", ["nvrx.restart", "nvrx.ft"])
def test_a_cycle_is_an_attempt_with_its_outcome_and_the_restarts_that_are_left(
    prefix: str,
) -> None:
    attributes = {
        "nvrx.cycle": 2,
        "nvrx.cycle_outcome": "failed",
        "nvrx.membership": "active",
        "nvrx.remaining_restarts": 1,
        "nvrx.max_restarts": 3,
    }
    assert found(f"{prefix}.cycle", attributes) == [
        AttemptStarted(layer="launcher", launcher_round=2),
        RestartBudget(layer="launcher", remaining=1, limit=3),
        AttemptEnded(learned_from="cycle outcome failed"),
    ]
    cycle, budget, _ = spans.events(told(f"{prefix}.cycle", attributes=attributes))
    trainer, *_ = spans.events(told("megatron.pretrain"))
    assert cycle.attempt == budget.attempt or budget.attempt is None
    assert cycle.attempt == trainer.attempt == attempt_id("llama-1", None, 2, None)
    for outcome in ("standby", "excluded"):
        assert found(f"{prefix}.cycle", {"nvrx.cycle": 2, "nvrx.cycle_outcome": outcome}) == []


def test_a_spare_that_waits_tells_nothing() -> None:
    assert found("nvrx.restart.await_round", {"nvrx.membership": "standby"}) == []


def test_a_fault_and_a_failed_check_keep_their_words() -> None:
    attributes = {"nvrx.failures": 2, "nvrx.state": "FAILED"}
    fault = Fault(kind="unknown", message="2 workers failed, state FAILED")
    assert found("nvrx.ft.fault", attributes) == [fault]
    assert found("nvrx.restart.fault") == [Fault(kind="unknown")]
    healthy, unhealthy = (
        Health(check="nvrx", state=state, detail=detail)
        for state, detail in (("healthy", None), ("unhealthy", "GPU 3 is lost"))
    )
    for name in ("nvrx.restart.health_check", "nvrx.ft.health_check"):
        assert found(name) == [*restart("health_check"), healthy]
        assert found(name, error="GPU 3 is lost")[-1] == unhealthy
    assert found("nvrx.restart.excluded")[0] == Health(
        check="nvrx", state="unhealthy", detail="node excluded"
    )


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"trace_id": "00" * 16}, "no trace id"),
        ({"span_id": ""}, "no span id"),
        ({"end": START - 1}, "before"),
        ({"end": 2**64 - 1}, "out of range"),
        ({"resource": {"dl.rank": 3}}, r"OTEL_RESOURCE_ATTRIBUTES=headway\.run=RUN"),
        ({"resource": {"job.uid": "x"}}, "is of no rank"),
        ({"resource": {**TRAINER, "dl.rank": -1}}, "rank is out of range"),
    ],
)
def test_a_span_that_does_not_say_enough_is_quarantined(
    changed: dict[str, Any], words: str
) -> None:
    with pytest.raises(wire.WireError, match=words):
        spans.events(told("megatron.evaluate", **changed))


def test_a_span_gives_the_same_records_each_time_and_another_span_others() -> None:
    once = spans.events(told("nvrx.restart.teardown"))
    assert spans.events(told("nvrx.restart.teardown")) == once
    assert [one.first_sequence for one in once] == [0, 1]
    (other, _) = spans.events(told("nvrx.restart.teardown", span_id="ef" * 8))
    assert other.producer != once[0].producer


def test_spans_alone_make_a_ledger_in_any_order() -> None:
    """Two cycles: 10 steps and a save of 5, then 5 steps done again and 5 more."""
    attributes = {"nvrx.cycle_outcome": "failed"}
    made: list[Told] = []

    def span(name: str, start: float, end: float, cycle: int, **attributes: Any) -> None:
        of_rank = RULES[name].of_rank
        resource = {**(TRAINER if of_rank else AGENT), "dl.rank": 0}
        given = {"nvrx.cycle": cycle, **{k.replace("__", "."): v for k, v in attributes.items()}}
        made.append(
            told(
                name,
                span_id=f"{len(made) + 1:016x}",
                start=ANCHOR + round(start * SECOND),
                end=ANCHOR + round(end * SECOND),
                resource={**resource, "nvrx.cycle": cycle},
                attributes=given,
            )
        )

    def attempt(cycle: int, at: float, first: int, last: int) -> float:
        span("megatron.startup.imports", at, at + 2, cycle)
        span("megatron.checkpoint.load", at + 2, at + 4, cycle)
        at += 4
        for number in range(first, last + 1):
            span("megatron.train.iteration", at, at + 1, cycle, megatron__iteration=number)
            at += 1
            if number == 5 and first == 1:
                span("megatron.checkpoint.save", at, at + 1, cycle, megatron__iteration=number)
                at += 1
        return at

    end = attempt(0, 0, 1, 10)
    span("nvrx.restart.fault", end + 1, end + 1, 0)
    span("nvrx.restart.teardown", end + 1, end + 2, 0)
    span("nvrx.restart.cycle", 0, end + 2, 0, **attributes)
    span("nvrx.restart.rendezvous", end + 2, end + 4, 1)
    span("nvrx.restart.worker_launch", end + 4, end + 5, 1)
    last = attempt(1, end + 5, 6, 15)
    events = [one for each in made for one in spans.events(each)]
    opening = record(0, RunStarted(run_name="llama"))
    as_of = ANCHOR + round(last * SECOND)
    ledgers = []
    for order in (events, events[::-1], events + events[::3]):
        timeline = Timeline("llama-1")
        timeline.add([opening, *order])
        ledgers.append(timeline.ledger(as_of))
    first, *others = ledgers
    seconds = {name: round(time / SECOND) for name, time in first.categories.items() if time}
    assert seconds == {
        "productive": 15,
        "rolled_back": 5,
        "checkpoint_save": 1,
        "startup": 2,
        "checkpoint_load": 4,
        "restart": 7,
    }
    assert all(other.categories == first.categories for other in others)
