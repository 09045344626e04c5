"""Other exporters' metrics: what of them is news, and what is no evidence of anything."""

import contextlib
import http.server
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from gpu_watch import Recorded
from headway.events import Event, GpuFault, GpuPresent, GpuSample, GpuXid, Health
from headway.exporter.gpus import scraper as scraper_module
from headway.exporter.gpus.echoes import KernelXids
from headway.exporter.gpus.scraped import Scraped, parse
from headway.exporter.gpus.scraper import GpuScraper

UUID = "GPU-a8394b51-c086-568a-9f1a-c1e1c934c44c"
ABOUT = (
    f'gpu="3",UUID="{UUID}",pci_bus_id="00000000:CB:00.0",device="nvidia3",'
    'modelName="NVIDIA H100 80GB HBM3",Hostname="n7",DCGM_FI_DRIVER_VERSION="580.95.05"'
)
SLICE = f'{ABOUT},GPU_I_PROFILE="1g.10gb",GPU_I_ID="7"'


def dcgm(xid: float | None = 0, about: str = ABOUT, **values: float) -> str:
    lines = []
    if xid is not None:
        lines += [
            "# HELP DCGM_FI_DEV_XID_ERRORS Value of the last XID error encountered.",
            "# TYPE DCGM_FI_DEV_XID_ERRORS gauge",
            f'DCGM_FI_DEV_XID_ERRORS{{{about},err_code="{xid}",err_msg="words"}} {xid}',
        ]
    for name, value in values.items():
        kind = "counter" if "COUNTER" in name or "TOTAL" in name or "ROWS" in name else "gauge"
        lines += [f"# HELP DCGM_FI_DEV_{name} Words.", f"# TYPE DCGM_FI_DEV_{name} {kind}"]
        lines += [f"DCGM_FI_DEV_{name}{{{about}}} {value}"]
    return "\n".join(lines) + "\n"


def faults(events: list[Event]) -> list[tuple[str, str | None, int | None]]:
    return [
        (event.kind, event.device, event.code) for event in events if isinstance(event, GpuFault)
    ]


def test_a_gpu_is_listed_and_measured_in_our_units() -> None:
    values = {
        "GPU_TEMP": 61,
        "POWER_USAGE": 654.32,
        "FB_USED": 1024,
        "GPU_UTIL": 97,
        "ECC_SBE_VOL_TOTAL": 4,
        "UNCORRECTABLE_REMAPPED_ROWS": 2,
        "ROW_REMAP_FAILURE": 0,
        "PCIE_REPLAY_COUNTER": 9,
    }
    scraped = Scraped()
    assert scraped.read(parse(dcgm(**values)), covered=()) == [
        GpuPresent(
            device=UUID,
            pci_address="0000:cb:00.0",
            index=3,
            product="NVIDIA H100 80GB HBM3",
            driver="580.95.05",
        ),
        GpuSample(
            device=UUID,
            temperature=61.0,
            power=654.32,
            memory_used=1024**3,
            utilization=0.97,
            ecc_corrected=4,
            remapped_uncorrectable=2,
            remap_failed=False,
            pcie_replays=9,
        ),
    ]
    again = scraped.read(parse(dcgm(**{**values, "PCIE_REPLAY_COUNTER": 10})), covered=())
    assert again == [
        GpuSample(
            device=UUID,
            temperature=61.0,
            power=654.32,
            memory_used=1024**3,
            utilization=0.97,
            pcie_replays=10,
        )
    ]


def test_what_the_driver_itself_tells_is_not_told_twice() -> None:
    scraped = Scraped()
    scraped.read(parse(dcgm(0, GPU_TEMP=61)), covered=(UUID,))
    events = scraped.read(parse(dcgm(79, GPU_TEMP=61)), covered=(UUID,))
    assert faults(events) == [("xid_changed", UUID, 79)]
    assert len(events) == 1


@pytest.mark.parametrize(
    ("looks", "codes"),
    [
        ([79], []),  # it may have come long ago
        ([79, 79, 79], []),  # it never goes back to 0
        ([0, 79, 79, 48, 48], [79, 48]),
        ([0, 79, 0, 79], [79, 79]),  # the exporter was started again in between
        ([None, 79], [79]),  # some versions list a GPU at its first Xid
        ([0, 79, None, 79, 48], [79, 48]),  # an exporter that starts again says nothing at first
        ([0, 2147483632], []),  # DCGM knows none
        ([0, float("nan")], []),
    ],
)
def test_the_last_xid_is_evidence_of_change_alone(
    looks: list[float | None], codes: list[int]
) -> None:
    scraped = Scraped()
    found = [
        fault
        for look in looks
        for fault in faults(scraped.read(parse(dcgm(look, SM_CLOCK=1)), covered=()))
    ]
    assert found == [("xid_changed", UUID, code) for code in codes]


def test_a_fault_of_a_slice_names_its_gpu_and_the_slice() -> None:
    scraped = Scraped()
    scraped.read(parse(dcgm(0) + dcgm(0, SLICE, FB_USED=5)), covered=())
    events = scraped.read(parse(dcgm(0) + dcgm(31, SLICE, FB_USED=5)), covered=())
    (fault,) = events
    assert isinstance(fault, GpuFault)
    assert (fault.device, fault.code, fault.source) == (UUID, 31, "DCGM")
    assert fault.message == "the last Xid is 31, it was 0 (MIG instance 7, 1g.10gb)"
    assert fault.classification == "application"


def test_an_xid_that_all_slices_show_is_one_fault_of_the_gpu() -> None:
    scraped = Scraped()
    other = SLICE.replace('GPU_I_ID="7"', 'GPU_I_ID="8"')
    scraped.read(parse(dcgm(0, SLICE) + dcgm(0, other)), covered=())
    (fault,) = scraped.read(parse(dcgm(79, SLICE) + dcgm(79, other)), covered=())
    assert isinstance(fault, GpuFault)
    assert (fault.device, fault.message) == (UUID, "the last Xid is 79, it was 0")


def test_an_address_that_is_none_is_no_trouble() -> None:
    odd = ABOUT.replace("00000000:CB:00.0", "N/A")
    (present, *_) = Scraped().read(parse(dcgm(0, odd)), covered=())
    assert isinstance(present, GpuPresent)
    assert present.pci_address == "N/A"


@pytest.mark.parametrize(
    ("line", "device", "code"),
    [
        ('syslog_health_monitor_xid_errors{{node="n7",err_code="79"}} {}', None, 79),
        ('syslog_health_monitor_xid_errors{{node="n7",err_code="145.2"}} {}', None, 145),
        (
            'accelerator_nvidia_xid_errors_total{{component="accelerator-nvidia-xid",'
            f'uuid="{UUID}",xid="94"}}}} {{}}',
            UUID,
            94,
        ),
    ],
)
def test_the_counts_of_others_tell_that_they_rose(line: str, device: str | None, code: int) -> None:
    kind = f"# TYPE {line.partition('{')[0]} counter\n"
    scraped = Scraped()
    looks = ["", 1, 1, 4, 2, 3]
    texts = [kind + line.format(look) + "\n" if look else "\n" for look in looks]
    found = [faults(scraped.read(parse(text), covered=())) for text in texts]
    change = [("xid_changed", device, code)]
    assert found == [[], change, [], change, [], change]


def test_a_count_without_a_code_is_left_out() -> None:
    scraped = Scraped()
    scraped.read(parse("\n"), covered=())
    text = 'accelerator_nvidia_xid_errors_total{uuid="x",xid="unknown"} 3\n'
    assert scraped.read(parse(text), covered=()) == []


def test_memory_that_breaks_between_two_looks_is_a_fault() -> None:
    scraped = Scraped()
    first = scraped.read(parse(dcgm(ECC_DBE_VOL_TOTAL=2, ROW_REMAP_FAILURE=0)), covered=())
    second = scraped.read(parse(dcgm(ECC_DBE_VOL_TOTAL=3, ROW_REMAP_FAILURE=1)), covered=())
    third = scraped.read(parse(dcgm(ECC_DBE_VOL_TOTAL=3, ROW_REMAP_FAILURE=1)), covered=())
    assert (faults(first), faults(third)) == ([], [])
    assert faults(second) == [("row_remap_failed", UUID, None), ("ecc_uncorrected", UUID, None)]


@contextmanager
def exporter(
    answer: Callable[[http.server.BaseHTTPRequestHandler], None],
) -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it had enough
                answer(self)

        def log_message(self, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/metrics"
    server.shutdown()
    server.server_close()
    thread.join()


def says(text: str, status: int = 200) -> Callable[[http.server.BaseHTTPRequestHandler], None]:
    def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        handler.end_headers()
        handler.wfile.write(text.encode())

    return answer


def until(scraper: GpuScraper, condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        scraper.poll()
        time.sleep(0.005)


def test_an_exporter_is_read_at_its_interval() -> None:
    recorded = Recorded()
    looks = iter([0] + [79] * 10_000)

    def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
        says(dcgm(next(looks), GPU_TEMP=50))(handler)

    with exporter(answer) as url:
        scraper = GpuScraper(recorded, url, interval=0.01)
        until(scraper, lambda: recorded.of(GpuFault))
        scraper.close()
    assert len(recorded.of(GpuFault)) == 1
    assert recorded.of(Health) == [Health(check=f"gpu exporter {url}", state="healthy")]


def test_a_change_that_the_kernels_log_has_told_of_is_not_told_again() -> None:
    recorded = Recorded()
    kernel = KernelXids(Recorded())
    kernel.node_event(GpuXid(code=79, device="0000:cb:00"), monotonic=time.monotonic_ns())
    looks = iter([0, 79] + [48] * 10_000)

    def answer(handler: http.server.BaseHTTPRequestHandler) -> None:
        says(dcgm(next(looks)))(handler)

    with exporter(answer) as url:
        scraper = GpuScraper(recorded, url, interval=0.01, kernel=kernel)
        until(scraper, lambda: recorded.of(GpuFault))
        scraper.close()
    assert faults(recorded.events) == [("xid_changed", UUID, 48)]


def drips(handler: http.server.BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.end_headers()
    while True:
        handler.wfile.write(b"#\n" * 40_000)
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("answer", "limits", "words"),
    [
        (says("", 503), {}, "it answers with status 503"),
        (says("{"), {}, "its answer is no exposition"),
        (drips, {"SIZE_LIMIT": 500_000}, "more than 500000 bytes"),
        (drips, {"SIZE_LIMIT": 10**9, "TIME_LIMIT": 0.05}, "more than 0 s"),
    ],
)
def test_an_answer_that_is_none_is_said_once_and_disables_the_check(
    answer: Callable[[http.server.BaseHTTPRequestHandler], None],
    limits: dict[str, float],
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in limits.items():
        monkeypatch.setattr(scraper_module, name, value)
    recorded = Recorded()
    with exporter(answer) as url:
        scraper = GpuScraper(recorded, url, interval=0.0)
        until(scraper, lambda: recorded.events)
        for _ in range(20):
            scraper.poll()
            time.sleep(0.002)
        scraper.close()
    (health,) = recorded.of(Health)
    assert len(recorded.events) == 1
    assert health.state == "disabled"
    assert words in (health.detail or "")


def test_an_exporter_that_is_away_is_said_once() -> None:
    recorded = Recorded()
    with exporter(says("")) as url:
        pass
    scraper = GpuScraper(recorded, url, interval=0.0)
    until(scraper, lambda: recorded.events)
    scraper.close()
    (health,) = recorded.of(Health)
    assert health.detail == "it does not answer (ConnectionError)"
