"""How a metric is declared."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One published Prometheus metric."""

    name: str
    kind: Literal["counter", "gauge"]
    description: str
    unit: str | None = None
    labels: tuple[str, ...] = ()
