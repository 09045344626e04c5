"""Every incident of a made-up day of trouble gets a post-mortem in both forms."""

from datetime import UTC

import pytest

from headway.ledger import ledger
from headway.postmortem.composing import postmortem
from headway.postmortem.html import html
from headway.postmortem.markdown import markdown
from headway.postmortem.page import page
from headway.report import report
from headway.simulate.presets import stormy
from headway.simulate.run import simulate
from postmortems import answers_of


@pytest.mark.parametrize("seed", [3, 8])
def test_every_kind_of_trouble_is_told(seed: int) -> None:
    made = simulate(stormy(seed), seed)
    read = ledger(made.events, made.end)
    told = report(read)
    assert len(told["incidents"]) > 3
    for one in told["incidents"]:
        found = postmortem(answers_of(one, told, read, notices=[]))
        assert [line.time for line in found.timeline] == sorted(
            line.time for line in found.timeline
        )
        assert sum(line.first_fault for line in found.timeline) == 1
        assert sum(phase.ns for phase in found.phases) == sum(one["phases"].values())
        document = page(found, UTC)
        assert one["headline"].partition(";")[0].rstrip(".") in document.title
        assert "None" not in markdown(document).replace("None.", "")
        assert html(document).endswith("</html>\n")
