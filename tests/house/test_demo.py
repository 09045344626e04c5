"""The demo: a real run with every service, judged by what the training itself wrote."""

import json
import re
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from headway.exporter.training.faults import schedule
from headway.metrics import CATEGORIES
from headway.settings import CollectorSettings

pytestmark = pytest.mark.slow

DEMO = [sys.executable, "-m", "headway", "demo"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A demo that ran to its end with its defaults."""

    folder: Path
    result: dict[str, Any]
    said: str
    training: str


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """Run the demo once, in a folder whose name has a space."""
    folder = tmp_path_factory.mktemp("a demo") / "state"
    ended = subprocess.run(
        [*DEMO, "--once", "--json", "--keep", folder], capture_output=True, text=True, timeout=600
    )
    assert ended.returncode == 0, ended.stderr
    (line,) = ended.stdout.splitlines()
    return Finished(
        folder=folder,
        result=json.loads(line),
        said=ended.stderr,
        training=(folder / "training.log").read_text(encoding="utf-8"),
    )


def test_the_parts_of_the_ledger_sum_to_the_elapsed_time(demo: Finished) -> None:
    categories = demo.result["categories"]

    assert list(categories) == sorted(CATEGORIES)
    assert all(type(ns) is int for ns in categories.values())
    assert sum(categories.values()) == demo.result["elapsed_ns"]


def test_every_fault_is_a_restart_in_process_by_an_exception(demo: Finished) -> None:
    assert demo.result["restarts"] == {"in_process": {"exception": 5}}
    assert demo.result["attempts"] == 6


def test_the_faults_struck_where_the_schedule_put_them(demo: Finished) -> None:
    planned = schedule(
        seed=42,
        num_faults=5,
        after_step=10,
        max_steps=300,
        world_size=2,
        types=["exception"],
        weights=None,
    )

    assert struck(demo) == [fault.step for fault in planned]


def test_each_rollback_is_the_distance_from_the_fault_to_the_restored_checkpoint(
    demo: Finished,
) -> None:
    restored = [int(n) for n in re.findall(r"resumed from \S+.*: (\d+) steps", demo.training)]

    distances = [fault - back for fault, back in zip(struck(demo), restored[1:], strict=True)]
    assert [rollback["steps"] for rollback in demo.result["rollbacks"]] == distances
    assert demo.result["steps"]["executed"] == 300 + sum(distances)


def test_the_run_reached_its_target_and_lost_no_event(demo: Finished) -> None:
    assert demo.result["steps"]["highest"] == demo.result["steps"]["target"] == 300
    assert demo.result["dropped_events"] == 0
    assert demo.result["checkpoint"]["step"] == 300
    durable = list((demo.folder / "training" / "checkpoints").glob("*/.metadata"))
    assert len(durable) >= 5


def test_the_goodputs_follow_from_the_categories(demo: Finished) -> None:
    parts, elapsed = demo.result["categories"], demo.result["elapsed_ns"]
    lost = sum(parts[name] for name in ("stalled", "restart", "down", "unattributed"))

    assert demo.result["training_goodput"]["low"] == pytest.approx(parts["productive"] / elapsed)
    assert demo.result["infrastructure_goodput"]["low"] == pytest.approx(1 - lost / elapsed)
    assert demo.result["training_goodput"]["low"] > 0


def test_nothing_that_the_demo_started_is_left(demo: Finished) -> None:
    assert re.search(r"collector: http://127\.0\.0\.1:\d+\ndashboard: http://127", demo.said)
    assert processes_about(demo.folder) == []


def test_a_busy_port_is_said_and_sigterm_ends_everything(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            other.bind(("127.0.0.1", CollectorSettings().port))
            other.listen()
        except OSError:
            pass  # busy already, which is as good
        with subprocess.Popen(
            [*DEMO, "--keep", folder], stderr=subprocess.PIPE, text=True
        ) as child:
            assert child.stderr is not None
            said = ""
            while "dashboard: " not in said:
                line = child.stderr.readline()
                assert line, said
                said += line
            child.send_signal(signal.SIGTERM)
            said += child.stderr.read()

    assert child.returncode == 128 + signal.SIGTERM
    assert f"port {CollectorSettings().port} is busy: the collector chooses another" in said
    assert "Traceback" not in said
    assert processes_about(folder) == []


def test_a_training_that_fails_is_said_with_its_last_words(tmp_path: Path) -> None:
    folder = tmp_path / "state"

    ended = subprocess.run(
        [*DEMO, "--once", "--json", "--steps", "5", "--keep", folder],  # no room for its faults
        capture_output=True,
        text=True,
        timeout=300,
    )

    assert ended.returncode == 1
    assert "headway: the training ended with 1" in ended.stderr
    assert f"last lines of {folder}/training.log" in ended.stderr
    assert ended.stdout == ""
    assert processes_about(folder) == []


@pytest.mark.parametrize("option", ["--ranks", "--steps", "--checkpoint-every"])
def test_a_number_that_no_training_can_have_is_refused_at_once(option: str) -> None:
    ended = subprocess.run([*DEMO, option, "0"], capture_output=True, text=True)

    assert ended.returncode == 2
    assert ended.stderr == f"headway: {option} is 0\ngive a number from 1 on\n"


def test_a_folder_that_cannot_be_made_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    ended = subprocess.run([*DEMO, "--keep", tmp_path / "file"], capture_output=True, text=True)

    assert ended.returncode == 2
    assert "cannot use the folder" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_demo_that_a_script_put_into_the_background_still_ends_with_sigint(
    tmp_path: Path,
) -> None:
    # A shell without job control starts what it puts into the background with SIGINT ignored.
    words = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *DEMO, "--keep", str(tmp_path / "state")]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as child:
        assert child.stderr is not None
        for line in child.stderr:
            if line.startswith("dashboard: "):
                break
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=60)

    assert child.returncode == 128 + signal.SIGINT
    assert processes_about(tmp_path) == []


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()

    ended = subprocess.run([*DEMO, "--keep", tmp_path], capture_output=True, text=True)

    assert ended.returncode == 2
    assert "is not empty" in ended.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def struck(demo: Finished) -> list[int]:
    return [int(step) for step in re.findall(r"injecting exception .*step (\d+)", demo.training)]


def processes_about(folder: Path) -> list[str]:
    """Return the command lines of every process that names the folder or works for it."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        try:
            spool = process.environ().get("HEADWAY_SPOOL", "")
        except psutil.Error:
            spool = ""
        words = " ".join(process.info["cmdline"] or ())
        if str(folder) in words or spool.startswith(str(folder)):
            found.append(words)
    return found
