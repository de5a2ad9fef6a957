"""Headless Chromium, driven over its debugging pipe, so that no driver has to be installed."""

import base64
import itertools
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from tests.helpers.support import machine

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find() -> str:
    """Return the path of a Chromium, installed first where that is possible.

    Raises `machine.SetupError` when there is none and none can be installed.
    """
    with machine.lock("chromium"):
        for attempt in ("look", "install"):
            for found in filter(None, map(shutil.which, _NAMES)):
                return found
            if attempt == "look" and machine.can_install():
                machine.apt_install("chromium")
    raise machine.SetupError("no Chromium: install one (on Debian: apt-get install chromium)")


class Browser:
    """One page in a headless Chromium.

    Speaks the DevTools protocol: https://chromedevtools.github.io/devtools-protocol/
    """

    def __init__(self, profile: Path) -> None:
        commands, self._send = os.pipe()
        self._receive, events = os.pipe()
        # Chromium reads from file 3 and writes to file 4.
        script = f'exec 3<&{commands} 4>&{events}; exec "$@"'
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        flags += ["--no-first-run", f"--user-data-dir={profile}", "--remote-debugging-pipe"]
        self._process = subprocess.Popen(
            ["bash", "-c", script, "bash", find(), *flags, "about:blank"],
            pass_fds=[commands, events],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(events)
        self._input = os.fdopen(self._receive, "rb")
        self._numbers = itertools.count(1)
        self._session = ""
        self.errors: list[str] = []
        pages = self._call("Target.getTargets")["targetInfos"]
        target = next(t["targetId"] for t in pages if t["type"] == "page")
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")
        self.requests: list[str] = []

    def close(self) -> None:
        """End the browser."""
        os.close(self._send)
        self._input.close()
        self._process.kill()
        self._process.wait()

    def open(self, url: str) -> None:
        """Load a page."""
        self._call("Page.navigate", url=url)

    def run(self, expression: str) -> Any:
        """Return the value of a JavaScript expression."""
        answer = self._call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def text(self) -> str:
        """Return the text that is visible."""
        return str(self.run("document.body ? document.body.innerText : ''"))

    def size(self, width: int, height: int, mobile: bool = False) -> None:
        """Set the size of the window, in CSS pixels."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
        self._call("Emulation.setDeviceMetricsOverride", **size)

    def prefer(self, scheme: str) -> None:
        """Set `prefers-color-scheme`: "light" or "dark"."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self._call("Emulation.setEmulatedMedia", features=features)

    def screenshot(self, path: Path) -> None:
        """Save what the window shows as a PNG."""
        path.write_bytes(base64.b64decode(self._call("Page.captureScreenshot")["data"]))

    def _call(self, method: str, **parameters: Any) -> Any:
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._send, json.dumps(message).encode() + b"\0")
        while True:
            got = self._read()
            if got.get("id") == number:
                assert "error" not in got, got["error"]
                return got["result"]
            if got.get("method") == "Network.requestWillBeSent":
                self.requests.append(got["params"]["request"]["url"])
            if got.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
                self.errors.append(json.dumps(got["params"]))

    def _read(self) -> Any:
        data = b""
        while not data.endswith(b"\0"):
            byte = self._input.read(1)
            assert byte, "Chromium ended"
            data += byte
        return json.loads(data[:-1])
