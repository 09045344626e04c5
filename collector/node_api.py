"""Nodes over HTTP: how often each failed, what that cost, and how to keep new work off it."""

from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from headway.collector.answers import error_answer, service_of


def routes() -> list[Route]:
    """Return the routes."""
    return [
        Route("/api/v1/nodes", nodes),
        Route("/api/v1/nodes/{node}", node),
    ]


def nodes(request: Request) -> Response:
    """Answer with every node, the one that fails most first."""
    return JSONResponse(service_of(request).node_histories.all())


def node(request: Request) -> Response:
    """Answer with one node, its GPUs and its runs."""
    name = request.path_params["node"]
    found = service_of(request).node_histories.one(name)
    if found is None:
        return error_answer(
            HTTPStatus.NOT_FOUND,
            f"nothing is known of a node {name!r}",
            "List the nodes with `headway nodes`.",
        )
    return JSONResponse(found)
