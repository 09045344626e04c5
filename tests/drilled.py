"""The hang under `ft_launcher` that was drilled and recorded once, and the example written of it.

Run as a program it writes the example anew: `PYTHONPATH=src:tests python tests/drilled.py`.
"""

import gzip
import json
import sys
from collections.abc import Sequence
from datetime import UTC
from pathlib import Path
from tempfile import TemporaryDirectory

from headway import wire
from headway.events import Envelope
from headway.postmortem.html import html
from headway.postmortem.markdown import markdown
from headway.postmortem.model import Postmortem
from headway.postmortem.page import page
from headway.postmortem.reading import postmortem_of
from incident_collector import running
from records import SECOND

ROOT = Path(__file__).parents[1]
_RECORDED = ROOT / "tests/data/postmortem/hang_under_ft_launcher.jsonl.gz"
LAUNCHER_LOG = _RECORDED.with_name("hang_under_ft_launcher.log")
EXAMPLES = ROOT / "docs/examples"
INCIDENT = "95355072ef95"
ASKED = 1_796_005_800 * SECOND
"""When the example was written, UTC ns: half an hour after the drill."""


def envelopes() -> Sequence[Envelope]:
    """Return every event of the drill's database, and what was said of it afterwards."""
    with gzip.open(_RECORDED, "rt", encoding="utf-8") as lines:
        return [wire.from_json(json.loads(line)) for line in lines]


def drilled(folder: Path) -> Postmortem:
    """Return the post-mortem as a collector tells it that was sent these events."""
    with running(folder / "events.duckdb", envelopes(), ASKED) as collector:
        return postmortem_of(collector.client.postmortem(INCIDENT))


def written(found: Postmortem) -> dict[str, str]:
    """Return the example by the name of its file."""
    document = page(found, UTC)
    return {"postmortem.md": markdown(document), "postmortem.html": html(document)}


def main() -> int:
    """Write the example."""
    with TemporaryDirectory() as folder:
        for name, text in written(drilled(Path(folder))).items():
            (EXAMPLES / name).write_text(text, encoding="utf-8")
            print(EXAMPLES / name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
