"""Chromium without a window, spoken to over two pipes in the DevTools protocol.

It needs no port and no library. Every wait has a deadline, and nothing is left behind.
"""

import contextlib
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PROGRAM = shutil.which("chromium")
FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--no-first-run",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--remote-debugging-pipe",
]


class Chromium:
    """A browser with one page. `events` holds all that it reported, as (method, parameters)."""

    def __init__(self, deadline: float = 60):
        self._deadline = time.monotonic() + deadline
        self._number = 0
        self._rest = b""
        self.events = []
        with contextlib.ExitStack() as stack:
            self._folder = stack.enter_context(
                tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
            )
            commands, self._write = os.pipe()
            self._read, answers = os.pipe()
            stack.callback(os.close, self._write)
            stack.callback(os.close, self._read)
            # The browser reads commands from its file 3 and answers to its file 4.
            shell = f'exec "$0" "$@" 3<&{commands} 4>&{answers}'
            self._process = subprocess.Popen(
                ["sh", "-c", shell, PROGRAM, *FLAGS, f"--user-data-dir={self._folder}"],
                pass_fds=(commands, answers),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
            os.close(commands)
            os.close(answers)
            stack.callback(self._end)
            target = self._call("Target.createTarget", url="about:blank")["targetId"]
            attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
            self._session = attached["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.call(f"{domain}.enable")
            self._stack = stack.pop_all()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._stack.close()

    def _end(self):
        # Its own process group: the browser and all its helpers.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, 9)
        self._process.wait(timeout=10)

    def _message(self) -> dict:
        while b"\0" not in self._rest:
            left = self._deadline - time.monotonic()
            if left <= 0 or not select.select([self._read], [], [], left)[0]:
                raise TimeoutError("Chromium has not answered in time")
            part = os.read(self._read, 1 << 20)
            if not part:
                raise ConnectionError("Chromium has ended")
            self._rest += part
        text, self._rest = self._rest.split(b"\0", 1)
        return json.loads(text)

    def _call(self, method: str, session: str | None = None, **parameters) -> dict:
        self._number += 1
        command = {"id": self._number, "method": method, "params": parameters}
        if session:
            command["sessionId"] = session
        data = json.dumps(command).encode() + b"\0"
        while data:
            data = data[os.write(self._write, data) :]
        while (message := self._message()).get("id") != self._number:
            self.events.append((message.get("method"), message.get("params", {})))
        if "error" in message:
            raise RuntimeError(f"{method}: {message['error']}")
        return message["result"]

    def call(self, method: str, **parameters) -> dict:
        return self._call(method, self._session, **parameters)

    def look(self, width: int, height: int = 900, dark: bool = False, scale: float = 1):
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, url: str):
        """Waits until the page is loaded and its charts are drawn."""
        self.events.clear()
        self.call("Page.navigate", url=url)
        while not any(method == "Page.loadEventFired" for method, _ in self.events):
            message = self._message()
            self.events.append((message.get("method"), message.get("params", {})))
        self.settle()

    def settle(self):
        frames = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        self.evaluate(frames)

    def evaluate(self, expression: str):
        """The value of a JavaScript expression, promises awaited."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def said(self, *methods: str) -> list[dict]:
        return [parameters for method, parameters in self.events if method in methods]
