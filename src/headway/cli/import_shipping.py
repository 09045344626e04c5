"""Imported runs into the collector, under the names by which it has them already."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from headway.cli.import_report import ImportedRun
from headway.cli.refusal import Refusal
from headway.events import StepsSummary
from headway.exporter.shipping import REFUSED_FOLDER, NotTakenError, Shipment, Shipper, num_records
from headway.settings import AgentSettings, ClientSettings
from headway.storage.client import CollectorClient
from headway.storage.collector_errors import CollectorError

_WHO_HAS = "SELECT DISTINCT run FROM events WHERE producer = $producer AND run IS NOT NULL"


def ship(
    runs: Sequence[ImportedRun], settings: AgentSettings, *, dated: bool, named: bool
) -> dict[str, Any]:
    """Send what stays true when the logs grow; return what became of it.

    `dated` says that somebody told when logs without a stamp began, `named` that the name of the
    run was given; else a log that the collector has under another name goes on there.

    Raises:
        Refusal: a run without any time, or the collector takes nothing.
    """
    for one in runs:
        if not one.timed and not dated:
            raise Refusal(
                f"the log of run {one.run} has no time stamp, so that it is unknown when it was",
                "say when it began: --start 2026-11-29T08:00:00Z",
            )
    shipper = Shipper(
        endpoint=settings.endpoint,
        token=settings.token,
        refused=Path(REFUSED_FOLDER),
        ca_file=settings.ca_file,
    )
    sent = Shipment()
    names = []
    try:
        for one in runs:
            name = one.run if named else _known_as(one, settings)
            names.append(name)
            events = [replace(event, run=name) for event in one.lasting]
            for begin in range(0, len(events), settings.batch):
                sent += shipper.ship(events[begin : begin + settings.batch])
    except NotTakenError as error:
        raise Refusal(str(error), "then run this import again; nothing is counted twice") from error
    finally:
        shipper.close()
    return {
        "acknowledged": sent.acknowledged,
        "refused": sent.refused,
        "waiting": sum(num_records(one.envelopes) - num_records(one.lasting) for one in runs),
        "runs": names,
    }


def _known_as(run: ImportedRun, settings: AgentSettings) -> str:
    """Return the name under which the collector has a log's steps; the run's own if it has not.

    Lines without a stamp may be alike in two logs.
    """
    first = next((one for one in run.lasting if isinstance(one.event, StepsSummary)), None)
    if first is None or run.log is None or not run.timed:
        return run.run
    asked = ClientSettings(
        endpoint=settings.endpoint, token=settings.token, ca_file=settings.ca_file
    )
    try:
        with CollectorClient(asked) as client:
            rows = client.sql(_WHO_HAS, parameters={"producer": first.producer})["rows"]
    except CollectorError:
        return run.run  # who may only write is not told, and the shipment itself says what ails
    names = sorted(row[0] for row in rows)
    return run.run if run.run in names or not names else names[0]
