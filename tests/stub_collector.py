"""A collector's read API over fixed answers, on a real port, for the tests of the pages."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from sample_run import Sample
from served import served


def application(samples: Sequence[Sample]) -> Starlette:
    """Return the read API over the given runs, the newest first; they may change meanwhile."""

    async def runs(_: Request) -> JSONResponse:
        return JSONResponse({"runs": [one.summary for one in samples]})

    async def part(request: Request) -> JSONResponse:
        wanted = request.path_params["run"]
        found = (one for one in samples if wanted in (one.report["run"], one.report["run_name"]))
        one = next(found, None)
        if one is None:
            return JSONResponse(
                {
                    "error": f"No run {wanted!r} is known here.",
                    "next": "Open the Fleet page for the runs that are.",
                },
                status_code=404,
            )
        answers = {
            "report": one.report,
            "intervals": {"intervals": one.intervals},
            "steps": {"points": one.points},
            "pace": {"as_of": one.report["as_of"], "tokens_per_step": None, "columns": []},
        }
        return JSONResponse(answers[request.path_params["part"]])

    return Starlette(
        routes=[Route("/api/v1/runs", runs), Route("/api/v1/runs/{run:str}/{part:str}", part)]
    )


@contextmanager
def collector(samples: Sequence[Sample]) -> Iterator[str]:
    """Serve the given runs on a free port and yield the address."""
    with served(application(samples)) as address:
        yield address
