"""A drill of alerts: a training that breaks on one sample again and again, and what is told of it.

One real training on two ranks is watched by the embedded notifier and by a real Prometheus with a
real Alertmanager, each with a receiver of its own.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import httpx

from agent_process import UNWATCHED
from alert_hearing import EVENTS, PATIENCE, Taken, heard, more, over
from alert_receiver import AlertReceiver, alert_receiver
from alert_stack import Standard, collecting, standard
from headway.cli import main
from launched import headway_run, surroundings

REPEAT = 2
SILENT = 4 * REPEAT
"""Seconds in which several repeats would come."""
RUN = "llama-7"
KEY = "the-routing-key"
TOKEN = "the-token"  # noqa: S105  # made up
PROGRAM = Path(__file__).with_name("looping_training.py")
RULES = ("RestartBudgetLow", "RestartBudgetExhausted", "PersistentFault", "RestartLoop")
PAGES = {"RestartBudgetExhausted", "PersistentFault"}
"""What wakes somebody; that the run loops is less than that its fault persists."""
SITE = """
default = "log"
group_wait = 1
group_interval = 1
repeat_interval = {repeat}
[receivers.log]
kind = "log"
[receivers.hook]
kind = "webhook"
url = "{address}/hook"
token = "file:{folder}/token"
[receivers.pager]
kind = "pagerduty"
key = "file:{folder}/key"
url = "{address}"
[receivers.lead]
kind = "webhook"
url = "{address}/lead"
[[routes]]
match = ['team="llm"', 'alertname=~"{rules}"']
receiver = "hook"
continue = true
{escalation}
[[routes]]
match = ['team="llm"', 'alertname=~"{rules}"']
receiver = "pager"
[rules.RestartLoop]
threshold = 2
keep = 0
[rules.PersistentFault]
keep = 0
[rules.RestartBudgetLow]
keep = 0
[rules.RestartBudgetExhausted]
keep = 0
"""
ESCALATION = 'escalate_to = "lead"\nescalate_after = 3'


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What was said and done from the first fault to the end; `log` are the embedded notices."""

    began: datetime
    ended: datetime
    embedded: list[Taken]
    standard: list[Taken]
    log: list[dict[str, Any]]
    silenced: tuple[float, float]
    """Seconds UTC from and to which the silence surely held."""
    state: dict[str, Any]
    """What `headway alerts check` said before anybody did something."""
    suppressed: list[Any]
    """Alertmanager's own words while it held."""
    through_silence: int
    """Notices of Alertmanager while it held."""
    acknowledged: float
    checks: tuple[int, int]
    """Statuses of `headway alerts check` while it fired, and after it was over."""
    incidents: list[dict[str, Any]]
    exits: tuple[int, int]


def drill(folder: Path) -> Course:
    """Let it happen, with all state in a folder."""
    (folder / "key").write_text(KEY)
    (folder / "token").write_text(TOKEN)
    with alert_receiver() as own, alert_receiver() as theirs:
        file = _alerts_file(folder / "own.toml", own, ESCALATION)
        # Alertmanager knows no acknowledgement, so that it cannot escalate without one.
        exported = _alerts_file(folder / "theirs.toml", theirs, "")
        with (
            collecting(folder, "--alerts-file", str(file)) as collector,
            standard(folder, collector, exported, "1s") as stack,
        ):
            return _Drill(folder, collector, stack, own, theirs).course()


def _alerts_file(path: Path, receiver: AlertReceiver, escalation: str) -> Path:
    text = SITE.format(
        address=receiver.address,
        folder=path.parent,
        rules="|".join(RULES),
        repeat=REPEAT,
        escalation=escalation,
    )
    path.write_text(text, encoding="utf-8")
    return path


class _Drill:
    """The services of a drill, and what is done to them."""

    def __init__(
        self,
        folder: Path,
        collector: str,
        stack: Standard,
        own: AlertReceiver,
        theirs: AlertReceiver,
    ) -> None:
        self._folder, self._collector, self._stack = folder, collector, stack
        self._own, self._theirs = own, theirs

    def course(self) -> Course:
        """Break the training until its launcher gives up, deal with the alerts, mend it."""
        began = datetime.now(UTC)
        gave_up = self._break()
        firing, state = soon(self._looping, "the loop")
        silences = self._silence()
        quiet_from = soon(self._hidden, "the silence")
        suppressed = soon(self._suppressed, "Alertmanager's silence")
        before = len(self._theirs.taken)
        quiet_to = self._looked_beyond(max(quiet_from, time.time()) + SILENT)
        through_silence = len(self._theirs.taken) - before
        self._end_silences(*silences)
        acknowledged = self._take()
        mended = self._mend()
        done, _ = self._alerts("check")
        return Course(
            began=began,
            ended=datetime.now(UTC),
            embedded=list(self._own.taken),
            standard=list(self._theirs.taken),
            log=self._alerts("log", "--limit", "500")[1]["deliveries"],
            silenced=(quiet_from, quiet_to),
            state=state,
            suppressed=suppressed,
            through_silence=through_silence,
            acknowledged=acknowledged,
            checks=(firing, done),
            incidents=said("incidents", RUN, "--endpoint", self._collector)[1],
            exits=(gave_up, mended),
        )

    def _alerts(self, *words: str) -> tuple[int, Any]:
        return said("alerts", *words, "--endpoint", self._collector)

    def _amtool(self, *words: str) -> str:
        command = ["amtool", f"--alertmanager.url={self._stack.alertmanager}", *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def _break(self) -> int:
        """Let rank 1 break three times, each once what the time before means was told."""
        with training(self._folder, self._collector) as process:
            for number, rules in ((1, {"RestartBudgetLow"}), (2, PAGES)):
                (self._folder / f"break-{number}").touch()
                for receiver in (self._own, self._theirs):
                    heard(receiver, "/hook", rules)
            (self._folder / "break-3").touch()
            status = process.wait(PATIENCE)
        heard(self._own, "/lead", set())
        return status

    def _looping(self) -> tuple[int, Any] | None:
        found = self._alerts("check")
        return found if "RestartLoop" in {one["rule"] for one in found[1]["alerts"]} else None

    def _silence(self) -> tuple[int, str]:
        words = (f'run="{RUN}"', "--for", "1h", "--reason", "drill", "--author", "ada")
        number = self._alerts("silence", *words)[1]["silence"]
        theirs = self._amtool("silence", "add", f"run={RUN}", "--comment=drill", "--duration=1h")
        return number, theirs

    def _end_silences(self, own: int, theirs: str) -> None:
        """End both silences, and wait until both engines say again what still fires."""
        words = ("--author", "ada", "--endpoint", self._collector)
        assert main(["alerts", "silence", "--end", str(own), *words]) == 0
        self._amtool("silence", "expire", theirs)
        for receiver in (self._own, self._theirs):
            more(receiver)

    def _hidden(self) -> float | None:
        """Return when a look found that nobody is told of anything here."""
        found = self._alerts("check")[1]
        ours = [one for one in found["alerts"] if one["rule"] in RULES]
        return found["as_of"] / 1e9 if all(one["hidden"] for one in ours) else None

    def _suppressed(self) -> list[Any] | None:
        """Return what Alertmanager says of the run's alerts once it tells nobody of any."""
        address = f"{self._stack.alertmanager}/api/v2/alerts"
        listed = httpx.get(address, trust_env=False).raise_for_status().json()
        ours = [one for one in listed if one["labels"]["alertname"] in RULES]
        is_known = "RestartLoop" in {one["labels"]["alertname"] for one in ours}
        is_quiet = all(one["status"]["state"] == "suppressed" for one in ours)
        return ours if is_known and is_quiet else None

    def _looked_beyond(self, seconds: float) -> float:
        """Return when the engine looked first after a time."""

        def look() -> float | None:
            when: float = self._alerts("check")[1]["as_of"] / 1e9
            return when if when > seconds else None

        return float(soon(look, "the next looks"))

    def _take(self) -> float:
        """Take what fires, and wait while it would be repeated; return when it was taken."""
        for group in self._alerts("check")[1]["groups"]:
            if group["subject"] == f"run {RUN}":
                assert self._alerts("ack", group["key"], "--author", "ada")[0] == 0
        taken = self._looked_beyond(self._alerts("check")[1]["as_of"] / 1e9)
        self._looked_beyond(taken + SILENT)
        return taken

    def _mend(self) -> int:
        """Start the training again without its fault, and wait for the end of its alerts."""
        (self._folder / "mended").touch()
        with training(self._folder, self._collector) as process:
            status = process.wait(PATIENCE)
        for path in ("/hook", "/lead", EVENTS):
            over(self._own, path)
        for path in ("/hook", EVENTS):
            over(self._theirs, path)
        return status


def said(*words: str) -> tuple[int, Any]:
    """Return status and object of a command."""
    written = StringIO()
    with redirect_stdout(written):
        status = main([*words, "--json"])
    return status, json.loads(written.getvalue())


def soon(found: Callable[[], Any], words: str) -> Any:
    """Return what a look gives as soon as it gives something."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if value := found():
            return value
        time.sleep(0.2)
    raise AssertionError(f"{words}: not in {PATIENCE} s")


@contextmanager
def training(folder: Path, collector: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Run the training under torchrun and `headway run`, as a user starts it."""
    torchrun = str(Path(sys.executable).with_name("torchrun"))
    words = [torchrun, "--standalone", "--nproc-per-node", "2", "--max-restarts", "2"]
    variables = {"HEADWAY_RUN_ID": "7", "OMP_NUM_THREADS": "1", **UNWATCHED}
    command = headway_run(folder / "spool", [*words, str(PROGRAM), str(folder)], collector)
    with (folder / "training.log").open("ab") as log:
        process = subprocess.Popen(
            command, env=surroundings(**variables), stdout=log, stderr=subprocess.STDOUT
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(120)
