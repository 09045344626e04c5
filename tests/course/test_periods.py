"""For how long each configuration of a run held."""

import pytest

from headway.course.periods import Period, periods, reads_as, setting_name, values_of
from headway.ledger import ledger
from timeline import at, timeline

RUN = """
    0       attempt A launcher world=1
    1       configured timeouts=process_group:10
    0-100   steps 1-100
    100     fault exception
    120     exit code=1 by=itself
    150     attempt B launcher world=1 node=n9
    150     configured timeouts=process_group:10
    150-200 steps 1-50
    200     fault exception
    210     exit code=1 by=itself
    220     attempt C launcher world=1
    221     configured timeouts=process_group:20
    220-300 steps 51-130
    300     run_ended completed
"""


@pytest.fixture(scope="module")
def found() -> list[Period]:
    return periods(ledger(timeline(RUN), at(300)))


def test_a_configuration_holds_until_an_attempt_changes_it(found: list[Period]) -> None:
    assert [(one.start, one.end, list(one.attempts)) for one in found] == [
        (at(0), at(220), [1, 2]),
        (at(220), at(300), [3]),
    ]
    (change,) = found[1].changes
    assert (change.name, change.before, change.after) == ("process_group", 10 * 10**9, 20 * 10**9)


def test_a_setting_is_found_by_its_name_and_value(found: list[Period]) -> None:
    for name in ("timeouts.process_group", "process_group"):
        ((key, value),) = values_of(found[1], name)
        assert setting_name(key) == "timeouts.process_group"
        assert reads_as(key, value, "20s")
        assert not reads_as(key, value, "10s")
    assert list(values_of(found[1], "group")) == []


@pytest.mark.parametrize(
    ("field", "value", "text", "expected"),
    [
        ("timeouts", 60 * 10**9, "60s", True),
        ("timeouts", 60 * 10**9, "1min", True),
        ("timeouts", 60 * 10**9, "60000000000", True),
        ("timeouts", 60 * 10**9, "60", False),
        ("options", 0.1, "1e-1", True),
        ("options", True, "true", True),
        ("options", True, "1", False),
        ("options", "AdamW", "adamw", True),
        ("training_good", ("a", "b"), "a,b", True),
        ("options", 3, "three", False),
    ],
)
def test_a_value_is_read_as_people_write_it(
    field: str, value: object, text: str, expected: bool
) -> None:
    assert reads_as((field, "x"), value, text) is expected
