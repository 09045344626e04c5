"""A browser as people have it: with a profile that it keeps, and nobody who looks into its scripts.

Playwright has V8 tell where every error of a script was raised, also of those that the script
itself catches. For that it reads the 4.7 MB that draw figures again and again: half a second of
each page that nobody else waits for. Here the browser is told by a pipe to open an address, and
asked when the page was ready; see https://chromedevtools.github.io/devtools-protocol/.
"""

import json
import os
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from browser_pages import QUIET

_LOOK_EVERY = 0.03
_READS, _WRITES = 3, 4
"""Where Chromium reads what it is asked, and where it writes the answers."""
_WATCH = """
window.watched = {ready: null, received: 0};
const Plain = window.WebSocket;
window.WebSocket = class extends Plain {
  constructor(...given) {
    super(...given);
    this.addEventListener('message', ({data}) => {
      window.watched.received += data.size ?? data.byteLength ?? data.length;
    });
  }
};
new MutationObserver((_, seen) => {
  if (document.querySelector(SELECTOR)) {
    seen.disconnect();
    const painted = new MessageChannel();
    painted.port1.onmessage = () => { window.watched.ready = performance.now(); };
    requestAnimationFrame(() => painted.port2.postMessage(0));
  }
}).observe(document, {subtree: true, childList: true});
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How a page came: seconds until what was waited for was painted, bytes of the web socket."""

    seconds: float
    received: int


class PlainBrowser:
    """A headless Chromium with a profile of its own in `profile`; its caches last as long as it."""

    def __init__(self, executable: str, profile: Path) -> None:
        """Start it."""
        asked, self._asks = os.pipe()
        self._answers, answered = os.pipe()
        self._received = b""
        self._number = 0
        options = [*QUIET.split(), "--remote-debugging-pipe", f"--user-data-dir={profile}"]
        # The shell puts the ends of the pipes where Chromium looks for them.
        command = f'exec "$0" "$@" {_READS}<&{asked} {_WRITES}>&{answered}'
        self._process = subprocess.Popen(
            ["bash", "-c", command, executable, *options, "--window-size=1440,900", "about:blank"],
            pass_fds=(asked, answered),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(asked)
        os.close(answered)

    def __enter__(self) -> Self:
        """Return the browser."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        os.close(self._asks)  # which ends Chromium
        self._process.wait(30)
        os.close(self._answers)

    @property
    def process_id(self) -> int:
        """Return the browser's own process; those of its pages are its children."""
        return self._process.pid

    def load(self, address: str, selector: str, patience: float) -> Load:
        """Open an address in a new tab, and close it once something on it matches `selector`.

        Raises:
            TimeoutError: nothing did within `patience` seconds.
        """
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        tab = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        try:
            self._ask("Page.enable", tab)
            script = _WATCH.replace("SELECTOR", json.dumps(selector))
            self._ask("Page.addScriptToEvaluateOnNewDocument", tab, source=script)
            self._ask("Page.navigate", tab, url=address)
            deadline = time.monotonic() + patience
            while (found := self._watched(tab)) is None or found["ready"] is None:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{address} showed no {selector} within {patience:g} s")
                time.sleep(_LOOK_EVERY)
        finally:
            self._ask("Target.closeTarget", targetId=target)
        return Load(seconds=found["ready"] / 1e3, received=found["received"])

    def _watched(self, tab: str) -> Mapping[str, Any] | None:
        wanted = {"expression": "window.watched", "returnByValue": True}
        found: Mapping[str, Any] | None = self._ask("Runtime.evaluate", tab, **wanted)[
            "result"
        ].get("value")
        return found

    def _ask(self, method: str, tab: str | None = None, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        asked = {"id": self._number, "method": method, "params": parameters}
        if tab is not None:
            asked["sessionId"] = tab
        os.write(self._asks, json.dumps(asked).encode() + b"\0")
        while True:
            told = self._told()
            if told.get("id") == self._number:
                if "error" in told:
                    raise RuntimeError(f"{method}: {told['error']}")
                result: dict[str, Any] = told["result"]
                return result

    def _told(self) -> dict[str, Any]:
        while b"\0" not in self._received:
            some = os.read(self._answers, 1 << 16)
            if not some:
                raise RuntimeError("the browser ended")
            self._received += some
        one, _, self._received = self._received.partition(b"\0")
        found: dict[str, Any] = json.loads(one)
        return found
