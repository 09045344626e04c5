"""The committed snapshot of the event schema and the rule for changing it.

Stored events outlive the version that wrote them: events and optional fields may be added, nothing
may be removed, renamed, retyped or made required. `python tests/event_schema.py` adds what is new.
"""

import json
import sys
from pathlib import Path
from typing import Any

from headway import wire
from headway.events import EVENTS, Envelope

SNAPSHOT = Path(__file__).parent / "house" / "event_schema.json"

Schema = dict[str, dict[str, dict[str, Any]]]


def stored() -> Schema:
    """Return the committed snapshot."""
    schema: Schema = json.loads(SNAPSHOT.read_text(encoding="utf-8"))
    return schema


def declared() -> Schema:
    """Return the schema that the declarations say now."""
    return {
        name: {
            spec.name: {
                "choices": sorted(spec.described.choices),
                "optional": spec.optional,
                "signed": spec.described.signed,
                "type": spec.kind.__name__,
                "unit": spec.described.unit,
            }
            for spec in wire.specs(declaration).values()
        }
        for name, declaration in {"envelope": Envelope, **EVENTS}.items()
    }


def breaks(old: Schema, new: Schema) -> list[str]:
    """Return what `new` changes that readers of `old` events cannot bear."""
    found = []
    for event, fields in old.items():
        if event not in new:
            found.append(f"event {event} was removed")
            continue
        for name, before in fields.items():
            after = new[event].get(name)
            if after is None:
                found.append(f"{event}.{name} was removed")
                continue
            found += [
                f"{event}.{name}: {key} was {before[key]!r}, is {after[key]!r}"
                for key in ("type", "unit", "signed")
                if before[key] != after[key]
            ]
            if before["optional"] and not after["optional"]:
                found.append(f"{event}.{name} became required")
            if before["choices"] or after["choices"]:
                gone = sorted(set(before["choices"]) - set(after["choices"]))
                found += [f"{event}.{name}: choice {choice!r} was removed" for choice in gone]
                if not before["choices"]:
                    found.append(f"{event}.{name}: any value was allowed, now there are choices")
        found += [
            f"{event}.{name} is new and required"
            for name, field in new[event].items()
            if name not in fields and not field["optional"]
        ]
    return found


def main() -> int:
    """Add what is new to the snapshot; refuse what breaks it."""
    found = breaks(stored(), declared()) if SNAPSHOT.exists() else []
    for sentence in found:
        print(sentence, file=sys.stderr)
    if not found:
        SNAPSHOT.write_text(json.dumps(declared(), indent=1, sort_keys=True) + "\n", "utf-8")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
