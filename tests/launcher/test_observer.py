"""What launchers say, joined with the ranks that recorded, as events of their run."""

import json
import signal
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from headway.events import (
    Artifact,
    Event,
    Fault,
    Note,
    RankExited,
    RestartBudget,
    RestartPhase,
    StopAnnounced,
)
from headway.exporter.identity import boot_id
from headway.exporter.launcher.observer import Observer
from headway.exporter.launcher.oom_log import OomLog
from headway.exporter.spooling.layout import Producer, Slot
from headway.exporter.spooling.writer import SpoolWriter
from launched import of, spooled

SECOND = 10**9
GONE = 4_000_000
"""Process ids from here on are larger than any that Linux gives by itself."""


class Launch:
    """An observer of a made-up command, and ranks that recorded and are gone."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        folder.mkdir()
        self.observer = Observer(folder, "mark", environment, None, OomLog("off"))

    def rank(self, rank: int, attempt: int = 0) -> int:
        """Let a rank record in an attempt and vanish; return its process."""
        process_id = GONE + 100 * attempt + rank
        producer = Producer(
            producer=f"{attempt:016x}{rank:016x}",
            anchor=time.time_ns() - time.monotonic_ns(),
            run="llama-7",
            rank=rank,
            node="n1",
            boot_id=boot_id(),
            process_id=process_id,
        )
        writer = SpoolWriter(self.folder, producer, 1024**2)
        writer.slots[Slot.ATTEMPT] = attempt + 1
        writer.slots[Slot.ACTIVITY] = time.monotonic_ns()
        writer.event(Note(text="here"), f"{attempt + 1:016x}", rank, time.monotonic_ns(), 0)
        writer.abandon()
        return process_id

    def say(self, *lines: str) -> None:
        for line in lines:
            self.observer.hear(line)

    def end(self) -> None:
        self.observer.start()
        self.observer.finish(0, 0, 30.0)

    def told(self) -> list[tuple[int | None, str | None, Event]]:
        """Return rank, attempt and event of all that the observer told."""
        self.end()
        return [
            (item.rank, item.attempt and item.attempt.lstrip("0"), item.event)
            for item in spooled(self.folder)
            if item.event != Note(text="here")
        ]


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Launch]:
    return Launch(tmp_path / "spool", {})


def stamped(seconds_ago: float) -> str:
    moment = datetime.fromtimestamp(time.time() - seconds_ago, UTC)
    return moment.strftime("%Y-%m-%d %H:%M:%S.") + f"{moment.microsecond // 1000:03d} UTC"


def exit_(process_id: int, **known: object) -> RankExited:
    return RankExited(process_id=process_id, **known)  # type: ignore[arg-type]


def test_a_launchers_line_tells_the_code_of_a_rank_that_nobody_saw_end(launch: Launch) -> None:
    zero, one = launch.rank(0), launch.rank(1)
    launch.say(
        f"ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) local_rank: 1 "
        f"(pid: {one}) of binary: python",
        f"WARNING:torch.distributed.elastic.multiprocessing.api:Sending process {zero} closing "
        "signal SIGTERM",
    )
    assert sorted(launch.told(), key=str) == [
        (0, "1", exit_(zero, by="launcher")),
        (1, "1", exit_(one, signal=9)),
    ]


def test_the_table_at_the_end_tells_every_failed_rank(launch: Launch) -> None:
    processes = [launch.rank(rank) for rank in range(3)]
    launch.say("train.py FAILED", "Failures:")
    for rank, code in ((1, 1), (2, -11), (0, 3)):
        launch.say(
            f"[{rank}]:",
            "  time      : 2026-06-08_19:04:45",
            f"  rank      : {rank} (local_rank: {rank})",
            f"  exitcode  : {code} (pid: {processes[rank]})",
            "  error_file: <N/A>",
        )
    assert sorted(launch.told(), key=str) == [
        (0, "1", exit_(processes[0], exit_code=3, by="itself")),
        (1, "1", exit_(processes[1], exit_code=1, by="itself")),
        (2, "1", exit_(processes[2], signal=11, by="itself")),
    ]


def test_a_rank_that_never_recorded_is_told_by_the_table(launch: Launch) -> None:
    launch.rank(0)
    launch.say("  rank      : 5 (local_rank: 1)", f"  exitcode  : 1 (pid: {GONE + 5})")
    assert (5, "1", exit_(GONE + 5, exit_code=1, by="itself")) in launch.told()


def test_what_was_said_before_the_first_record_belongs_to_its_run(launch: Launch) -> None:
    launch.say("[default] Worker group FAILED. 3/3 attempts left; will restart worker group")
    launch.observer.look()
    launch.rank(0)
    budget = RestartBudget(layer="launcher", remaining=2, limit=3)
    assert [event for _, _, event in launch.told() if isinstance(event, RestartBudget)] == [budget]


def test_the_first_start_is_no_restart(launch: Launch) -> None:
    launch.say("[default] Rendezvous'ing worker group", "[default] Starting worker group")
    launch.observer.look()
    launch.rank(0)
    launch.end()
    assert of(spooled(launch.folder), RestartPhase) == []


def test_a_profiled_restart_has_its_phases_at_their_own_times(launch: Launch) -> None:
    launch.rank(0)
    launch.observer.look()
    prefix = "2026-.. [INFO] [host] [workload:?(?) infra:?(?)] profiling.py:90   - Cycle: 1 Event:"
    ago = {
        "failure_detected": 9.0,
        "worker_terminated": 8.0,
        "rendezvous_started": 7.5,
        "health_check_completed": 7.0,
        "rendezvous_completed": 6.0,
        "worker_start_started": 5.0,
        "worker_start_completed": 4.0,
    }
    for name, seconds in ago.items():
        launch.say(f"{prefix} {name} Node: n1_1_0 Rank: 0 Time: {stamped(seconds)}")
    launch.end()
    found = [item for item in spooled(launch.folder) if isinstance(item.event, RestartPhase)]
    assert [
        (item.event.phase, item.event.state)
        for item in found
        if isinstance(item.event, RestartPhase)
    ] == [
        ("stop_workers", "began"),
        ("stop_workers", "ended"),
        ("rendezvous", "began"),
        ("health_check", "ended"),
        ("rendezvous", "ended"),
        ("spawn", "began"),
        ("spawn", "ended"),
    ]
    assert found[-1].monotonic - found[0].monotonic == pytest.approx(5 * SECOND, abs=SECOND // 100)


def test_a_fired_watchdog_is_a_fault_and_its_kill_the_launchers(launch: Launch) -> None:
    process_id = launch.rank(1)
    launch.say(
        "[t] [WARNING] [RankMonServer12@n1:1] Section 'step' has been open for 6.22 seconds. "
        "Timeout is 6.00 seconds.",
        "[t] [WARNING] [RankMonServer12@n1:1] FT timeout elapsed.",
        f"[t] [ERROR] [ft_launcher1@n1] failed (exitcode: -9) local_rank: 1 (pid: {process_id}) of",
    )
    assert sorted(launch.told(), key=str) == [
        (
            1,
            "1",
            Fault(
                kind="section_timeout",
                message="Section 'step' has been open for 6.22 seconds. Timeout is 6.00 seconds.",
                ran_for=6_220_000_000,
                timeout=6 * SECOND,
                phase="step",
            ),
        ),
        (1, "1", exit_(process_id, signal=9, by="launcher")),
    ]


def test_each_attempts_ranks_end_in_their_own_attempt(launch: Launch) -> None:
    first, second = launch.rank(0, attempt=0), launch.rank(0, attempt=1)
    launch.say(f"failed (exitcode: 1) local_rank: 0 (pid: {first}) of binary: python")
    launch.say(f"failed (exitcode: -11) local_rank: 0 (pid: {second}) of binary: python")
    assert sorted(launch.told(), key=str) == [
        (0, "1", exit_(first, exit_code=1, by="itself")),
        (0, "2", exit_(second, signal=11, by="itself")),
    ]


def test_a_nested_restart_is_one_only_where_it_went_on(launch: Launch) -> None:
    launch.rank(0)
    launch.observer.look()
    starting = "[NestedRestarter] name=[InJob] state=handling stage=starting"
    launch.say(starting, "[NestedRestarter] name=[InJob] state=aborted")
    launch.observer.look()
    assert of(spooled(launch.folder), RestartPhase) == [], "a job that ends well says so, too"
    launch.say(starting, "[NestedRestarter] name=[InJob] state=handling stage=completed")
    launch.end()
    assert [(said.phase, said.state) for said in of(spooled(launch.folder), RestartPhase)] == [
        ("stop_workers", "began"),
        ("stop_workers", "ended"),
    ]


def test_slurm_tells_of_tasks_and_of_its_own_stop(tmp_path: Path) -> None:
    launch = Launch(tmp_path / "spool", {"SLURM_JOB_ID": "1"})
    processes = [launch.rank(rank) for rank in range(2)]
    launch.say(
        "slurmstepd: error: *** STEP 1.0 ON n1 CANCELLED AT 2025-01-10T15:27:25 DUE TO TIME "
        "LIMIT ***",
        "srun: error: n1: tasks 0-1: Terminated",
    )
    assert sorted(launch.told(), key=str) == [
        (0, "1", exit_(processes[0], signal=15, by="scheduler")),
        (1, "1", exit_(processes[1], signal=15, by="scheduler")),
        (None, "1", StopAnnounced(reason="time_limit")),
    ]


def test_a_stop_is_told_once_however_often_it_is_asked_for(launch: Launch) -> None:
    launch.rank(0)
    launch.observer.signalled(signal.SIGTERM, False)
    launch.observer.signalled(signal.SIGTERM, False)
    launch.say("W0409 api.py:719] Received 15 death signal, shutting down workers")
    launch.end()
    assert of(spooled(launch.folder), StopAnnounced) == [StopAnnounced(reason="sigterm")]


def test_signals_that_ask_for_no_end_are_no_stop(launch: Launch) -> None:
    launch.rank(0)
    launch.observer.signalled(signal.SIGUSR1, False)
    launch.observer.signalled(signal.SIGRTMIN + 1, False)
    launch.end()
    assert of(spooled(launch.folder), StopAnnounced) == []


def test_damage_to_a_line_is_no_failure_of_the_observer(
    launch: Launch, caplog: pytest.LogCaptureFixture
) -> None:
    launch.rank(0)
    launch.say("failed (exitcode: -9) local_rank: 999999999 (pid: 999999999)")
    launch.say("  exitcode  : 1 (pid: 1)", "[NestedRestarter] name=[Odd] state=x stage=starting")
    launch.end()
    assert "could not be observed" not in caplog.text
    assert of(spooled(launch.folder), RankExited)


def test_json_of_a_cycle_file_becomes_notes(tmp_path: Path) -> None:
    launch = Launch(tmp_path / "spool", {})
    launch.rank(0)
    launch.observer.look()
    (process,) = launch.observer._ranks.known.values()
    process.cycle_info = tmp_path / "cycle_info..current"
    content = {
        "cycle_number": 1,
        "cycle_start_time": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
        "cycle_end_time": "",
        "cycle_log_file": "/logs/app_cycle1.log",
        "active_nodes": "n1",
        "standby_nodes": "",
    }
    path = tmp_path / "cycle_info..0.1"
    path.write_text(json.dumps(content))
    launch.end()
    found = spooled(launch.folder)
    assert Note(text="NVRx cycle 1 began on n1", author=path.name) in of(found, Note)
    assert of(found, Artifact) == [Artifact(kind="cycle_log", path="/logs/app_cycle1.log")]


def test_a_cycle_file_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    launch = Launch(tmp_path / "spool", {})
    launch.rank(0)
    launch.observer.look()
    (process,) = launch.observer._ranks.known.values()
    process.cycle_info = tmp_path / "cycle_info..current"
    (tmp_path / "cycle_info..0.0").write_bytes(b"\xff\x00")
    content = {"cycle_number": 1, "cycle_start_time": "", "active_nodes": "n1"}
    (tmp_path / "cycle_info..0.1").write_text(json.dumps(content))
    launch.end()
    told = [note.text for note in of(spooled(launch.folder), Note)]
    assert "NVRx cycle 1 began on n1" in told


def test_a_cycle_that_has_ended_is_read_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch = Launch(tmp_path / "spool", {})
    launch.rank(0)
    launch.observer.look()
    (process,) = launch.observer._ranks.known.values()
    process.cycle_info = tmp_path / "cycle_info..current"
    ended = {"cycle_number": 0, "cycle_end_time": "2026-11-29T14:38:34Z", "active_nodes": "n1"}
    (tmp_path / "cycle_info..0.0").write_text(json.dumps(ended))
    going = {"cycle_number": 1, "cycle_end_time": "", "active_nodes": "n1"}
    (tmp_path / "cycle_info..0.1").write_text(json.dumps(going))
    launch.observer._files.cycles()
    read: list[str] = []
    text_of = Path.read_text

    def counted(path: Path, *arguments: Any, **options: Any) -> str:
        read.append(path.name)
        return text_of(path, *arguments, **options)

    monkeypatch.setattr(Path, "read_text", counted)
    launch.observer._files.cycles()
    assert read == ["cycle_info..0.1"]
    launch.end()
