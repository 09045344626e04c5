"""Lines of a launcher are found in whatever a command writes."""

import pytest

from headway.exporter.launcher.relay import Lines

FAILED = b"failed (exitcode: -9) local_rank: 1 (pid: 77) of binary: python"


def heard(*chunks: bytes) -> list[str]:
    found: list[str] = []
    lines = Lines(found.append)
    for chunk in chunks:
        lines.add(chunk)
    lines.end()
    return found


@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_a_progress_bar_before_a_launchers_line_hides_nothing(size: int) -> None:
    bar = b"".join(
        b"\r %3d%%|####      | %d/5000 [00:01<00:02]" % (n // 50, n) for n in range(5000)
    )
    written = bar + b"\r" + FAILED + b"\r\nnext\n"
    chunks = [written[at : at + size] for at in range(0, len(written), size)]
    assert heard(*chunks) == [FAILED.decode()]


def test_of_a_line_without_an_end_the_beginning_is_heard_once() -> None:
    endless = [b"x" * 60_000] * 5
    assert heard(FAILED, *endless, FAILED, b"\n", FAILED) == [
        (FAILED + b"x" * 2000).decode()[:2000],
        FAILED.decode(),
    ]
