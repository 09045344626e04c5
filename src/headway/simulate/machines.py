"""The nodes of a simulated run: which the group uses, which are spare, which are being repaired."""

from headway.events import Allocation
from headway.simulate.plan import Plan


class Machines:
    """Nodes by name; a lost one is replaced, by a spare one if there is one."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._nodes = [f"node-{number:05d}" for number in range(plan.nodes)]
        self._named = plan.nodes
        self._spares = plan.spare_nodes
        self._returns: list[int] = []

    @property
    def count(self) -> int:
        """Nodes that the group uses."""
        return len(self._nodes)

    @property
    def world(self) -> int:
        """Ranks of the group: one for each GPU."""
        return self.count * self._plan.gpus_per_node

    @property
    def gpus(self) -> int:
        """GPUs to hold, those of spare nodes included."""
        return (self.count + self._spares) * self._plan.gpus_per_node

    def node(self, rank: int) -> str:
        """Return the node on which a rank runs."""
        return self._nodes[min(rank // self._plan.gpus_per_node, self.count - 1)]

    def lose(self, node: str, now: int) -> None:
        """Take a node out; an elastic group without a spare node shrinks until the repair."""
        position = self._nodes.index(node)
        if self._plan.elastic and not self._spares and self.count > 1:
            self._nodes.pop(position)
            self._returns.append(now + self._plan.repair)
            return
        self._spares = max(self._spares - 1, 0)
        self._nodes[position] = self._new()

    def resize(self, nodes: int) -> None:
        """Let the group have this many nodes from its next attempt on."""
        self._nodes = self._nodes[:nodes]
        self._nodes += [self._new() for _ in range(nodes - len(self._nodes))]

    def take_back(self, now: int) -> None:
        """Let repaired nodes join."""
        back = sum(time <= now for time in self._returns)
        self._returns = [time for time in self._returns if time > now]
        self._nodes += [self._new() for _ in range(back)]

    def _new(self) -> str:
        self._named += 1
        return f"node-{self._named - 1:05d}"

    def allocation(self, gpus: int) -> Allocation:
        """Return the event that says how many GPUs the run holds now."""
        wanted = self._plan.nodes + self._plan.spare_nodes
        return Allocation(
            gpus_held=gpus,
            gpus_requested=wanted * self._plan.gpus_per_node,
            nodes_held=gpus // self._plan.gpus_per_node,
            nodes_requested=wanted,
            source="simulator",
        )
