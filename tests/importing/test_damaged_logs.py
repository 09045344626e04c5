"""What a log can be like and still be read, and what is refused; nothing in a log raises."""

import bz2
import gzip
import io
import json
import lzma
import random
import time

import pytest
import zstandard

from headway.cli import log_files as log_files_module
from headway.cli import main
from headway.importing.formats import FORMATS, rules_for
from headway.importing.log import LogImport
from headway.importing.merging import Stream
from headway.importing.stamps import Stamps
from headway.ledger import ledger
from imported import LOGS, imported, one_run, spent, written

EXCERPTS = sorted([*LOGS.glob("*.log"), *(LOGS / "made_up").glob("*.log")])
CORE = LOGS / "megatron_core_torch_dist.log"


def read(text, *, pieces=None):
    """Return the events of a text given in pieces, and the reader."""
    clock = Stamps(latest=1_790_000_000 * 10**9)
    stream = Stream(pieces or [text], rules_for("auto"), clock)
    log = LogImport("run")
    for told in stream:
        log.take(told.saying, told.moment, told.rank, told.text)
    return [one for each in log.finish() for one in each.course.journal.envelopes], stream.reader


def packed(kind, data):
    if kind == "zst":
        return zstandard.ZstdCompressor().compress(data)
    return {"gz": gzip.compress, "xz": lzma.compress, "bz2": bz2.compress}[kind](data)


@pytest.mark.parametrize("kind", ["gz", "xz", "zst", "bz2"])
def test_packed_logs_are_read_like_plain_ones(capsys, tmp_path, kind):
    path = tmp_path / f"{CORE.name}.{kind}"
    path.write_bytes(packed(kind, CORE.read_bytes()))

    found = imported(capsys, path)

    assert spent(found["runs"][0]) == spent(one_run(capsys, CORE))
    assert found["runs"][0]["run"] == CORE.stem
    assert found["files"][0]["packing"] is not None


def test_of_a_packed_file_without_its_end_what_is_there_counts(capsys, tmp_path):
    path = tmp_path / "torn.log.gz"
    whole = gzip.compress(CORE.read_bytes())
    path.write_bytes(gzip.compress(CORE.read_bytes() * 20)[:-50])

    found = imported(capsys, path)

    assert found["files"][0]["torn"] is not None
    assert found["lines"]["suspicious"]["packed file without its end"] == 1
    assert found["runs"][0]["steps"]["highest"] == 260
    for short in (whole[:-8], whole + b"what is no gzip"):
        path.write_bytes(short)
        assert one_run(capsys, path)["steps"]["highest"] == 260


@pytest.mark.slow
def test_a_file_that_unpacks_to_absurdly_much_is_refused(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(log_files_module, "_ABSURD_SIZE", 10 * 1024**2)
    path = tmp_path / "bomb.log.gz"
    path.write_bytes(gzip.compress(b"\n" * 32 * 1024**2))

    assert main(["import", "auto", str(path)]) == 2
    assert "times its size" in capsys.readouterr().err


def test_a_binary_file_is_left_out_and_alone_refused(capsys, tmp_path):
    binary = tmp_path / "weights.bin"
    binary.write_bytes(random.Random(1).randbytes(100_000))  # noqa: S311

    found = imported(capsys, CORE, binary)
    assert [one["skipped"] for one in found["files"]] == [None, "no text"]
    assert main(["import", "auto", str(binary)]) == 2
    assert "no text" in capsys.readouterr().err


def test_empty_missing_and_meaningless_files_are_refused(capsys, tmp_path):
    for path in (
        written(tmp_path, "", "empty.log"),
        tmp_path / "missing.log",
        written(tmp_path, "hello\n" * 10, "prose.log"),
    ):
        assert main(["import", "auto", str(path)]) == 2
        assert capsys.readouterr().err.startswith("headway: ")


@pytest.mark.parametrize(
    "encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig", "latin-1"]
)
def test_other_encodings_are_read(capsys, tmp_path, encoding):
    path = tmp_path / "train.log"
    path.write_bytes(("Größe\n" + CORE.read_text()).encode(encoding))

    assert spent(one_run(capsys, path)) == spent(one_run(capsys, CORE))


def test_colours_carriage_returns_and_a_hole_of_zeros_change_nothing(capsys, tmp_path):
    lines = CORE.read_text().splitlines()
    text = "\r\n".join(f"\x1b[32m{line}\x1b[0m" for line in lines) + "\r\n" + "\0" * 5000

    found = imported(capsys, written(tmp_path, text))

    assert spent(found["runs"][0]) == spent(one_run(capsys, CORE))
    assert found["lines"]["suspicious"] == {"zero bytes": 1}


@pytest.mark.slow
def test_bars_that_a_terminal_redraws_are_one_line_each(capsys, tmp_path):
    name = "hf_trainer_nccl_timeout.log"
    text = (LOGS / name).read_text().replace("s/it]\n", "s/it]\r")

    run = one_run(capsys, written(tmp_path, text))

    assert run["log"]["highest_step_completed"] == 13
    assert spent(run) == spent(one_run(capsys, LOGS / name))


def test_a_torn_line_is_not_read_as_another_number(capsys, tmp_path):
    lines = CORE.read_text().splitlines()
    torn = [line[:120] if line.startswith(" [2025-04-13 23:42:14]") else line for line in lines]
    end = lines[-1][: lines[-1].index("per iteration (ms): ") + len("per iteration (ms): 9")]

    run = one_run(capsys, written(tmp_path, "\n".join([*torn[:-1], end])))

    assert run["steps"]["executed"] == run["steps"]["highest"] == 260
    assert spent(run)["productive"] == pytest.approx(237, abs=1)


@pytest.mark.parametrize("path", EXCERPTS, ids=lambda path: path.stem)
def test_it_does_not_matter_how_a_log_is_cut_into_pieces(path):
    text = path.read_bytes().decode("utf-8", "replace")
    whole, _ = read(text)

    for size in (7, 64, 1000):
        pieces = [text[begin : begin + size] for begin in range(0, len(text), size)]
        assert repr(read(text, pieces=pieces)[0]) == repr(whole)


@pytest.mark.parametrize("path", EXCERPTS, ids=lambda path: path.stem)
def test_no_damage_raises(path):
    chance = random.Random(path.stem)  # noqa: S311
    lines = path.read_bytes().decode("utf-8", "replace").splitlines(keepends=True)
    for _ in range(15):
        kept = list(lines)
        in_order = True
        for _ in range(chance.randint(1, 12)):
            place = chance.randrange(len(kept))
            line = kept[place]
            match chance.randrange(7):
                case 0:
                    kept[place] = line[: chance.randrange(len(line) + 1)]
                case 1:
                    kept.insert(chance.randrange(len(kept)), line)
                case 2:
                    kept[place] = line.rstrip("\n") + chance.choice(kept)
                case 3:
                    spot = chance.randrange(len(line) + 1)
                    kept[place] = line[:spot] + chance.choice("\0\r\x1b[%|[]{}9:-") + line[spot:]
                case 4:
                    kept[place] = line.replace("1", str(chance.randrange(10**15)))
                case 5:
                    chance.shuffle(kept)
                    in_order = False
                case 6:
                    kept[place] = line[::-1]
        events, reader = read("".join(kept))
        assert reader.lines >= reader.understood
        if events and in_order:
            found = ledger(events, max(one.anchor + one.monotonic for one in events))
            assert found.elapsed >= 0


ENDLESS = [
    "iteration" + " " * 50_000 + "1/ 2 |",
    "]" * 50_000 + "iteration 1/2 |",
    "12%|" + "#" * 50_000 + "| 1/2 [00:01<00:01, 1.0it/s",
    "0: " * 20_000,
    "Epoch [1][" + " " * 50_000,
    "Traceback (most recent call last)" + "a.Error" * 10_000,
    "srun: error: node: tasks " + "1," * 30_000,
    "Checkpoint " + "global_step" * 5_000 + " is ready now",
    "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=" + "1" * 50_000,
    "Restored all states from the checkpoint at " + "step=" * 10_000,
    '{"event_type": "checkpoint_saved", ' * 2_000,
    "[" * 60_000 + '"current_steps"',
]


@pytest.mark.parametrize("line", ENDLESS, ids=lambda line: line[:12].strip() or "blank")
def test_no_line_takes_more_than_its_length(line):
    once = _cost(line + "\n")
    assert _cost((line + "\n") * 8) < 40 * once + 0.5


def _cost(text):
    began = time.process_time()
    read(text)
    return time.process_time() - began


def test_importing_a_log_again_grown_or_not_repeats_no_record():
    text = CORE.read_text()
    whole, _ = read(text)
    again, _ = read(text)
    lines = text.splitlines(keepends=True)
    part, _ = read("".join(lines[:40]))

    assert again == whole
    known = {}
    for one in whole:
        for number in range(one.first_sequence, one.last_sequence + 1):
            known[one.producer, number] = one.event.name
    for one in part:
        if one.event.name == "steps.summary":
            assert known[one.producer, one.first_sequence] == one.event.name


def test_every_format_is_offered_and_described(capsys):
    with pytest.raises(SystemExit):
        main(["import", "--help"])
    told = capsys.readouterr().out

    for name in ("auto", *FORMATS):
        assert name in told


def test_the_report_is_valid_json_without_nan(capsys):
    found = imported(capsys, LOGS / "maxtext_nan_loss.log")

    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert io.StringIO(json.dumps(found)).read()


def test_people_get_the_ledger_and_the_summary(capsys):
    assert main(["import", "auto", str(LOGS / "hf_trainer_nccl_timeout.log")]) == 0
    told = capsys.readouterr().out

    assert "Training goodput" in told
    assert "8 lines: 7 understood" in told
    assert "see --year" in told
