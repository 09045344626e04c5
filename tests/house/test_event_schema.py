"""The event schema may grow and may not change."""

from collections.abc import Callable

import pytest

from event_schema import Schema, breaks, declared, stored


def test_no_declared_event_breaks_the_snapshot() -> None:
    assert breaks(stored(), declared()) == []


def test_the_snapshot_holds_every_declared_event() -> None:
    assert stored() == declared(), "run: PYTHONPATH=src python tests/event_schema.py"


def add_event(schema: Schema) -> None:
    schema["coffee"] = {"cups": {**schema["fault"]["signal"], "optional": False}}


def add_optional_field(schema: Schema) -> None:
    schema["fault"]["colour"] = dict(schema["fault"]["message"])


def add_choice(schema: Schema) -> None:
    schema["fault"]["kind"]["choices"].append("cosmic_ray")


@pytest.mark.parametrize("change", [add_event, add_optional_field, add_choice])
def test_events_optional_fields_and_choices_may_be_added(change: Callable[[Schema], None]) -> None:
    schema = stored()
    change(schema)

    assert breaks(stored(), schema) == []


def remove_event(schema: Schema) -> None:
    del schema["fault"]


def rename_field(schema: Schema) -> None:
    schema["fault"]["words"] = schema["fault"].pop("message")


def retype_field(schema: Schema) -> None:
    schema["fault"]["signal"]["type"] = "str"


def change_unit(schema: Schema) -> None:
    schema["phase.ended"]["duration"]["unit"] = "s"


def require_field(schema: Schema) -> None:
    schema["fault"]["message"]["optional"] = False


def add_required_field(schema: Schema) -> None:
    schema["fault"]["colour"] = {**schema["fault"]["message"], "optional": False}


def remove_choice(schema: Schema) -> None:
    schema["fault"]["kind"]["choices"].remove("hang")


def restrict_field(schema: Schema) -> None:
    schema["fault"]["message"]["choices"] = ["ouch"]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (remove_event, "event fault was removed"),
        (rename_field, "fault.message was removed"),
        (retype_field, "fault.signal: type was 'int', is 'str'"),
        (change_unit, "phase.ended.duration: unit was 'ns', is 's'"),
        (require_field, "fault.message became required"),
        (add_required_field, "fault.colour is new and required"),
        (remove_choice, "fault.kind: choice 'hang' was removed"),
        (restrict_field, "fault.message: any value was allowed, now there are choices"),
    ],
)
def test_what_readers_of_old_events_cannot_bear_is_named(
    change: Callable[[Schema], None], sentence: str
) -> None:
    schema = stored()
    change(schema)

    assert breaks(stored(), schema) == [sentence]
