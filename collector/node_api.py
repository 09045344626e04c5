"""Nodes over HTTP: how often each failed, what that cost, and how to keep new work off it."""

from dataclasses import dataclass
from typing import Annotated, Any

from headway.collector import schemas
from headway.collector.endpoint import Answer, Asked, Endpoint, NotKnown
from headway.collector.paging import MOST
from headway.collector.schemas import list_of, object_of
from headway.collector.service import Service


@dataclass(frozen=True, slots=True, kw_only=True)
class AllNodes:
    """A question about every node."""

    limit: Annotated[
        int | None, Asked(sentence="Only so many, those that fail most.", lowest=1, highest=MOST)
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OneNode:
    """A question about one node."""

    node: Annotated[str, Asked(sentence="Name of the node.")]


def nodes(service: Service, asked: AllNodes) -> Answer:
    """Every node, the one that fails most first, and the rate of the fleet."""
    histories = service.node_histories

    def content() -> dict[str, Any]:
        found = histories.all()
        return {**found, "nodes": found["nodes"][: asked.limit]}

    return Answer(content=content, version=histories.version)


def node(service: Service, asked: OneNode) -> Answer:
    """One node with its GPUs, its runs and its health around them."""
    histories = service.node_histories

    def content() -> dict[str, Any]:
        found = histories.one(asked.node)
        if found is None:
            raise NotKnown(
                f"nothing is known of a node {asked.node!r}",
                "List the nodes with `headway nodes`.",
            )
        return found

    return Answer(content=content, version=histories.version)


ENDPOINTS = (
    Endpoint.get(
        "/api/v1/nodes",
        nodes,
        object_of(
            nodes=list_of(schemas.NODE),
            of=schemas.INTEGER,
            repeats=schemas.INTEGER,
            fleet=schemas.NODE_RATE,
        ),
    ),
    Endpoint.get(
        "/api/v1/nodes/{node}",
        node,
        schemas.NODE,
    ),
)
