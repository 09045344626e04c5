"""An OpenTelemetry span per step, and a counter and histogram of prometheus_client per step.

The span carries nothing and goes to an exporter that drops it; the metrics' children are cached.
Argument: the number of steps.
"""

import json
import sys
import time
from collections.abc import Sequence

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from prometheus_client import CollectorRegistry, Counter, Histogram

from benchmarks.recording.cost import BLOCK, per_step


class _Nowhere(SpanExporter):
    """Drops spans."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return SpanExportResult.SUCCESS


def main() -> None:
    """Measure and print."""
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(_Nowhere()))
    tracer = provider.get_tracer("bench")
    registry = CollectorRegistry()
    completed = Counter("steps", "Steps.", registry=registry)
    duration = Histogram("step_seconds", "Duration.", registry=registry)

    def spans(first: int) -> None:
        for _ in range(first, first + BLOCK):
            tracer.start_span("step").end()

    def metrics(first: int) -> None:
        for _ in range(first, first + BLOCK):
            began = time.perf_counter()
            duration.observe(time.perf_counter() - began)
            completed.inc()

    number = int(sys.argv[1])
    found = {
        "span": per_step(spans, number)._asdict(),
        "metrics": per_step(metrics, number)._asdict(),
    }
    print(json.dumps(found))
    provider.shutdown()


if __name__ == "__main__":
    main()
