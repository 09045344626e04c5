"""A log that is imported while it grows tells the same as once it is whole, and nothing twice."""

import gzip
import random

import pytest

from headway.events import StepsSummary
from headway.importing.formats import rules_for
from headway.importing.log import LogImport
from headway.importing.merging import Stream, merged
from headway.importing.stamps import Stamps
from headway.ledger import Timeline
from imported import LOGS, SECOND, imported, utc, written

EXCERPTS = sorted(LOGS.rglob("*.log"))
BEGIN = 1_790_000_000 * SECOND


def told(*texts, timed=True):
    """Return what an import of some files would send, by run; of logs with stamps where `timed`."""
    clock = Stamps()
    streams = [
        Stream(
            [text],
            rules_for("auto"),
            Stamps(),
            alone=len(texts) == 1,
            growing=True,
            since=getattr(Stamps().read(text), "time", 0),
        )
        for text in texts
    ]
    log = LogImport("run", clock)
    for one in merged(streams):
        log.take(one.saying, one.moment, one.rank, one.text)
    return {one.run: one.lasting() for one in log.finish(0) if one.timed or not timed}


def books(*imports):
    """Return the ledgers of runs that several imports told of."""
    known = {}
    for one in imports:
        for run, events in one.items():
            if events:
                known.setdefault(run, []).extend(events)
    found = {}
    for run, events in known.items():
        timeline = Timeline(run)
        timeline.add(events)
        found[run] = timeline.ledger(max(one.wall for one in events))
    return found


def shown(book):
    attempts = [(one.resumed, one.first_step, one.last_step) for one in book.attempts]
    return attempts, book.steps, book.state, book.newest_durable and book.newest_durable.step


def same(found, whole, within):
    assert found.keys() == whole.keys()
    for run, book in whole.items():
        assert shown(found[run]) == shown(book)
        for name, time in book.categories.items():
            assert abs(found[run].categories[name] - time) <= within, name


def stamped(now):
    return f"[{utc(now):%Y-%m-%d %H:%M:%S}]"


def random_log(chance):
    """Return the lines of a Megatron run with an uneven pace, saves, crashes and going back."""
    interval = chance.choice((1, 1, 5, 10))
    now, step, saved, lines = BEGIN, 0, 0, []
    for _ in range(chance.randrange(60, 400)):
        step += interval
        took = chance.choice((200, 210, 220, 230))
        now += interval * took * SECOND // 1000
        lines.append(
            f" {stamped(now)} iteration {step:8d}/  100000 | consumed samples: {step * 16:12d} | "
            f"elapsed time per iteration (ms): {took:.1f} | learning rate: 1.0E-05 | "
            f"lm loss: {2 + chance.random():.6E} | number of skipped iterations:   0 | "
            "number of nan iterations:   0 |"
        )
        dice = chance.random()
        if dice < 0.05:
            saved = step
            lines.append(f"saving checkpoint at iteration {step:7d} to ckpt in torch_dist format")
            lines.append(f"  successfully saved checkpoint from iteration {step:7d} to ckpt")
        elif dice < 0.07:
            now += 90 * SECOND
            lines.append("using world size: 8, data-parallel size: 1")
            lines.append(f" loading checkpoint from ckpt at iteration {saved}")
            lines.append(f"  successfully loaded checkpoint from ckpt at iteration {saved}")
            step = saved
    return [f"{line}\n" for line in lines]


@pytest.mark.parametrize("path", EXCERPTS, ids=lambda path: path.stem)
def test_an_excerpt_cut_anywhere_gives_the_whole_ones_ledger_once_it_is_whole(path):
    lines = path.read_text(errors="replace").splitlines(keepends=True)
    whole = told("".join(lines))
    timed = bool(whole)
    whole = whole or told("".join(lines), timed=False)
    ledger = books(whole)
    for seed in range(5):
        chance = random.Random(seed)  # noqa: S311
        cuts = sorted(chance.randrange(1, len(lines) + 1) for _ in range(2))

        grown = books(*(told("".join(lines[:cut]), timed=timed) for cut in cuts), whole)

        assert grown.keys() == ledger.keys()
        for run, book in ledger.items():
            assert shown(grown[run]) == shown(book), cuts


@pytest.mark.parametrize("seed", range(20))
def test_a_growing_log_cut_anywhere_gives_the_whole_ones_ledger_once_it_is_whole(seed):
    chance = random.Random(seed)  # noqa: S311
    lines = random_log(chance)
    text = "".join(lines)
    # also in the middle of a line: a program writes what its buffer holds
    cuts = sorted(chance.randrange(1, len(text)) for _ in range(4))
    whole = told(text)

    grown = books(*(told(text[:cut]) for cut in cuts), whole, whole)

    # where an import ended, the steps of one block share its time evenly
    same(grown, books(whole), within=len(cuts) * 5 * SECOND)


@pytest.mark.parametrize("seed", range(10))
def test_a_log_that_was_rotated_goes_on_with_its_parts_in_any_order(seed):
    chance = random.Random(100 + seed)  # noqa: S311
    lines = random_log(chance)
    cut = chance.randrange(1, len(lines))
    old, new = "".join(lines[:cut]), "".join(lines[cut:])
    whole = told(old + new)

    grown = books(told(old), told(old, new), whole)

    same(grown, books(whole), within=5 * SECOND)
    same(books(told(old, new)), books(whole), within=SECOND)


def test_parts_that_are_sent_one_after_the_other_are_both_there():
    lines = random_log(random.Random(3))  # noqa: S311
    restart = next(n for n, line in enumerate(lines) if line.startswith("using world size"))
    old, new = "".join(lines[:restart]), "".join(lines[restart:])

    (apart,) = books(told(old), told(new)).values()
    (whole,) = books(told(old + new)).values()

    assert apart.steps == whole.steps
    assert len(apart.attempts) == len(whole.attempts)


def test_the_files_order_their_copies_and_their_names_change_nothing(capsys, tmp_path):
    lines = random_log(random.Random(5))  # noqa: S311
    half = len(lines) // 2
    old = written(tmp_path, "".join(lines[:half]), "train.log.1")
    new = written(tmp_path, "".join(lines[half:]), "train.log")
    packed = tmp_path / "copy.log.gz"
    packed.write_bytes(gzip.compress(old.read_bytes()))
    earlier = written(tmp_path, "".join(lines[half : half + 20]), "earlier.log")

    found = [
        imported(capsys, *paths, kind="megatron")
        for paths in ((old, new), (new, old), (new, earlier, packed, old), (packed, new))
    ]

    for one in found:
        (run,) = one["runs"]
        (first,) = found[0]["runs"]
        assert run["steps"] == first["steps"]
        assert run["log"]["step_lines"] == first["log"]["step_lines"]
    assert [one["runs"][0]["run"] for one in found[:2]] == ["train", "train"]
    left_out = [one["path"] for one in found[2]["files"] if one["skipped"]]
    assert left_out == [str(earlier), str(old)]


def test_steps_are_not_sent_before_it_shows_for_how_many_a_line_stands():
    line = (
        " [2026-09-21 14:13:20] iteration {:8d}/  100000 | consumed samples: 160 | "
        "elapsed time per iteration (ms): 200.0 | lm loss: 2.0E+00 |\n"
    )

    (one,) = told(line.format(10)).values()
    (three,) = told("".join(line.format(step) for step in (10, 20, 30))).values()

    assert [each for each in one if isinstance(each.event, StepsSummary)] == []
    assert sum(each.event.num_steps for each in three if isinstance(each.event, StepsSummary)) == 30
