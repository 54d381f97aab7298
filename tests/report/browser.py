"""A headless Chromium, driven over a pipe by its devtools protocol; tests are skipped where there is none."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def chromium() -> str:
    """Where Chromium is; skips the test that asks where it is not."""
    found = next((path for path in map(shutil.which, NAMES) if path), None)
    if found is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    return found


class Browser:
    """One page at a time: what goes wrong in it is in ``errors``."""

    def __init__(self) -> None:
        self.errors: list[str] = []
        self._count, self._folder = 0, tempfile.TemporaryDirectory()
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe"]
        command = [chromium(), *options, f"--user-data-dir={self._folder.name}"]

        def plumb() -> None:
            read, write = os.dup(theirs_in), os.dup(theirs_out)
            os.dup2(read, 3)
            os.dup2(write, 4)

        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen(command, preexec_fn=plumb, close_fds=False, **quiet)
        os.close(theirs_in)
        os.close(theirs_out)
        self._rest = b""
        target = self._ask("Target.createTarget", {"url": "about:blank"}, None)["targetId"]
        attached = self._ask("Target.attachToTarget", {"targetId": target, "flatten": True}, None)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, *error: object) -> None:
        self._process.terminate()
        self._process.wait(20)
        os.close(self._out)
        os.close(self._in)
        self._folder.cleanup()

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """A command to the page, and its answer."""
        return self._ask(method, parameters, self._session)

    def _ask(self, method: str, parameters: dict[str, Any], session: str | None) -> dict[str, Any]:
        self._count += 1
        message = {"id": self._count, "method": method, "params": parameters}
        message |= {} if session is None else {"sessionId": session}
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._count:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self._note(answer)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            more = os.read(self._in, 1 << 20)
            assert more, "Chromium has gone"
            self._rest += more
        first, _, self._rest = self._rest.partition(b"\0")
        return json.loads(first)

    def _note(self, event: dict[str, Any]) -> None:
        method, given = event.get("method"), event.get("params", {})
        bad = {"Runtime.exceptionThrown", "Log.entryAdded", "Page.javascriptDialogOpening"}
        if method in bad or (method == "Runtime.consoleAPICalled" and given["type"] in ("error", "warning", "assert")):
            self.errors.append(json.dumps(given)[:500])
        if method == "Network.requestWillBeSent" and not given["request"]["url"].startswith(
            ("file:", "data:", "about:", "blob:", "http://127.0.0.1:")
        ):
            self.errors.append("network: " + given["request"]["url"])

    def open(self, page: Path | str, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """Load a file, or an address, in a window of this size."""
        self.errors.clear()
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.ask("Emulation.setEmulatedMedia", features=scheme)
        self.ask("Page.navigate", url=page if isinstance(page, str) else page.resolve().as_uri())
        self.evaluate(
            "new Promise(done => document.readyState === 'complete' ? done(1) : addEventListener('load', done))"
        )

    def evaluate(self, script: str) -> Any:
        """The value of an expression in the page, awaited."""
        found = self.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def overflow(self) -> int:
        """By how many pixels the page is wider than its window."""
        return int(self.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        """A picture of the page."""
        data = self.ask("Page.captureScreenshot", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))
