"""How long the canvas of the Run page takes to draw a thousand ranks over a day.

The component's own files are mounted in a real browser without Streamlit around them, with rows
that all differ: the server's answer at its largest. The clock runs from the call of the component
until a pixel of the drawn canvas has been read back, so that nothing is left to be done later.
"""

import random
from pathlib import Path
from statistics import quantiles
from typing import Any

from playwright.sync_api import Browser

from headway.course.rank_lanes import LEFT
from headway.dashboard import rank_canvas
from headway.metrics import CATEGORIES

RANKS = 1_000
DAY_MS = 86_400_000
COLUMNS = 1_200
PIECES = 200
"""Pieces of each row: with `RANKS` rows the most pairs that an answer holds."""
BAR_MS = 200.0

_FOLDER = Path(rank_canvas.__file__).with_name("canvas")
_MOUNT = """
() => {
  const root = document.getElementById("root");
  const begin = performance.now();
  window.mount({ parentElement: root, data: window.given, setTriggerValue: () => {} });
  root.querySelector("canvas").getContext("2d").getImageData(100, 100, 1, 1);
  return performance.now() - begin;
}
"""


def answer(seed: int = 1) -> dict[str, Any]:
    """Return the answer of the read API about a thousand ranks that all did something else."""
    chance = random.Random(seed)  # noqa: S311  # pictures, not secrets
    names = [*CATEGORIES, LEFT]
    lanes = []
    for _ in range(RANKS):
        cuts = sorted(chance.sample(range(1, COLUMNS), PIECES - 1))
        lengths = [b - a for a, b in zip([0, *cuts], [*cuts, COLUMNS], strict=True)]
        lanes.append([one for length in lengths for one in (length, chance.randrange(len(names)))])
    return {
        "start": 1_790_000_000_000 * 10**6,
        "end": (1_790_000_000_000 + DAY_MS) * 10**6,
        "columns": COLUMNS,
        "names": names,
        "lanes": lanes,
        "rows": [
            {"ranks": [rank], "node": f"node-{rank // 8:03}", "lane": rank, "steps": True}
            for rank in range(RANKS)
        ],
    }


def incidents(number: int = 50) -> list[dict[str, Any]]:
    """Return incidents to mark."""
    chance = random.Random(2)  # noqa: S311
    begin = 1_790_000_000_000
    return [
        {
            "incident": str(one),
            "number": one,
            "cause": "gpu_fault",
            "opened": (begin + DAY_MS * one // number) * 10**6,
            "recovered": (begin + DAY_MS * one // number + 300_000) * 10**6,
            "suspect_rank": chance.randrange(RANKS),
        }
        for one in range(1, number + 1)
    ]


def draw_times(browser: Browser, rounds: int = 20, density: float = 1.0) -> list[float]:
    """Return the ms that drawing took, once a round, on a screen of a density."""
    data = rank_canvas.picture(answer(), incidents(), "UTC", zoomed=False)
    html, css, js = (
        (_FOLDER / f"ranks.{kind}").read_text("utf-8") for kind in ("html", "css", "js")
    )
    script = js.replace("export default function", "window.mount = function")
    page = browser.new_page(viewport={"width": 1400, "height": 900}, device_scale_factor=density)
    try:
        page.set_content(f"<style>{css}</style><div id=root style='width:1300px'>{html}</div>")
        page.add_script_tag(type="module", content=script)
        page.wait_for_function("() => window.mount !== undefined")
        page.evaluate("(data) => { window.given = data; }", data)
        return [float(page.evaluate(_MOUNT)) for _ in range(rounds)]
    finally:
        page.close()


def figures(browser: Browser) -> dict[str, Any]:
    """Return what was measured, beside its bar."""
    found = {}
    for density in (1.0, 2.0):
        times = draw_times(browser, density=density)
        found[f"density_{density:g}"] = {
            "first_ms": round(times[0], 1),
            "p95_ms": round(quantiles(times, n=20)[-1], 1),
        }
    slowest = max(one["p95_ms"] for one in found.values())
    return {
        "ranks": RANKS,
        "hours": DAY_MS // 3_600_000,
        "pieces": RANKS * PIECES,
        **found,
        "bar_ms": BAR_MS,
        "met": slowest < BAR_MS,
    }
