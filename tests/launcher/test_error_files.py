"""What torchelastic's error files and NVRx's cycle files say, whatever is in them."""

import json

from hypothesis import given
from hypothesis import strategies as st

from headway.events import Fault
from headway.exporter.launcher.error_files import Cycle, cycle_of, error_of

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
)
KEYS = st.sampled_from(
    ["message", "extraInfo", "py_callstack", "cycle_number", "cycle_start_time", "active_nodes"]
)


def test_an_error_file_names_the_exception() -> None:
    content = {
        "message": {
            "message": "ValueError: boom: twice",
            "extraInfo": {"py_callstack": "Traceback ...", "timestamp": "1795963114"},
        }
    }
    assert error_of(json.dumps(content)) == Fault(
        kind="exception",
        message="ValueError: boom: twice",
        exception="ValueError",
        traceback="Traceback ...",
    )


def test_a_gpu_without_memory_is_no_plain_exception() -> None:
    content = {"message": {"message": "OutOfMemoryError: CUDA out of memory", "extraInfo": {}}}
    found = error_of(json.dumps(content))
    assert found is not None
    assert (found.kind, found.exception) == ("gpu_oom", "OutOfMemoryError")


def test_words_without_a_name_are_kept_as_words() -> None:
    found = error_of('{"message": "it just broke"}')
    assert found == Fault(kind="exception", message="it just broke")


def test_a_cycle_file_of_nvrx() -> None:
    content = {
        "job_id": "",
        "attempt_index": 0,
        "cycle_number": 1,
        "cycle_start_time": "2026-11-29T14:38:34.789000Z",
        "cycle_end_time": "",
        "cycle_log_file": "/logs/app_cycle1.log",
        "active_nodes": "node-a,node-b",
        "standby_nodes": ["node-c"],
        "generation": "1",
    }
    assert cycle_of(json.dumps(content)) == Cycle(
        number=1,
        began=1795963114_789_000_000,
        ended=None,
        log_file="/logs/app_cycle1.log",
        active_nodes="node-a,node-b",
        standby_nodes="node-c",
    )


@given(st.text(max_size=100) | st.builds(json.dumps, st.dictionaries(KEYS, ANYTHING, max_size=5)))
def test_nothing_that_a_file_holds_is_an_error(text: str) -> None:
    error_of(text)
    cycle_of(text)


def test_a_file_that_nests_without_end_is_no_error() -> None:
    assert error_of("[" * 100_000) is None
