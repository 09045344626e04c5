"""A training that nobody may touch has a live ledger under `headway run --profile`."""

import subprocess
import sys
import time

import pytest

from headway.events import RankExited
from headway.exporter.launcher.live_log import LiveLog
from headway.exporter.spooling.reader import SpoolReader, spools
from headway.importing.formats import rules_for
from headway.ledger import ledger
from launched import headway_run, of, spooled, surroundings

TRAINING = """
import sys, time

def line(step):
    print(
        f" [2020-01-01 00:00:00] iteration {step:8d}/     100 | consumed samples: {step * 16:12d} |"
        " elapsed time per iteration (ms): 20.0 | lm loss: 2.000000E+00 | number of skipped "
        "iterations:   0 | number of nan iterations:   0 |", flush=True)

for first, last in ((1, 12), (9, 15)):
    for step in range(first, last + 1):
        time.sleep(0.02)
        line(step)
        if (first, step) == (1, 8):
            print("saving checkpoint at iteration       8 to ckpt", flush=True)
            print("  successfully saved checkpoint from iteration       8 to ckpt", flush=True)
    if first == 1:
        print(" loading checkpoint from ckpt at iteration 8", flush=True)
        print("  successfully loaded checkpoint from ckpt at iteration 8", flush=True)
sys.exit(3)
"""


def words_of(spool, options, training):
    words = headway_run(spool, [sys.executable, "-c", training])
    place = words.index("--")
    return [*words[:place], *options, *words[place:]]


def under(spool, *options):
    return subprocess.run(
        words_of(spool, options, TRAINING),
        env=surroundings(HEADWAY_RUN_ID="untouched"),
        capture_output=True,
        timeout=120,
        check=False,
    )


@pytest.mark.slow
def test_an_untouched_training_has_the_ledger_that_its_output_tells(tmp_path):
    done = under(tmp_path, "--profile", "megatron")
    envelopes = [one for one in spooled(tmp_path) if one.run == "untouched"]

    assert done.returncode == 3
    assert done.stdout.count(b"consumed samples") == 19  # its output is as it was
    book = ledger(envelopes, max(one.anchor + one.monotonic for one in envelopes))
    told = [(a.resumed, a.first_step, a.last_step) for a in book.attempts]
    assert told == [(0, 1, 12), (8, 9, 15)]
    assert (book.steps.executed, book.steps.rework) == (19, 4)
    assert book.newest_durable.step == 8
    # lines count when they arrive, whatever their stamps say
    assert book.start > 1_700_000_000 * 10**9
    assert [one.exit_code for one in of(envelopes, RankExited)] == [3]


@pytest.mark.slow
def test_the_ledger_of_an_untouched_training_grows_while_it_runs(tmp_path):
    training = TRAINING.replace("    if first == 1:\n", "    if first == 1:\n        input()\n")
    words = words_of(tmp_path, ["--profile", "megatron"], training)
    with subprocess.Popen(
        words,
        env=surroundings(HEADWAY_RUN_ID="untouched"),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    ) as process:
        assert process.stdin is not None
        deadline = time.monotonic() + 120
        book = None
        while book is None or (book.steps.highest, book.steps.target) != (12, 100):
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.1)
            envelopes = [one for one in spooled(tmp_path) if one.run == "untouched"]
            if envelopes:
                book = ledger(envelopes, max(one.anchor + one.monotonic for one in envelopes))
        # what the agent says of the rank while it waits
        shown = [SpoolReader(path).status() for path in spools(tmp_path)]
        process.stdin.write(b"\n")  # only now it goes on
        process.stdin.close()
        process.wait(120)

    (attempt,) = {one.attempt for one in envelopes if one.attempt is not None}
    assert (attempt, 12) in [(one.attempt, one.last_step) for one in shown]
    assert (book.state, book.newest_durable.step) == ("running", 8)


@pytest.mark.slow
def test_an_unknown_profile_starts_nothing(tmp_path):
    done = under(tmp_path, "--profile", "megaton")

    assert done.returncode == 2
    assert b"megatron" in done.stderr
    assert done.stdout == b""


def test_output_that_comes_faster_than_it_is_read_is_counted_and_holds_nobody_up(tmp_path):
    live = LiveLog(tmp_path, rules_for("megatron"), None)

    for _ in range(1000):
        live.hear(b"x" * 100)  # nobody reads yet

    live.start()
    live.finish(0, 30)
    assert spooled(tmp_path) == []  # no training was told of, so there is nothing to count it on
