"""What a worker did in its last steps, by the clock that all workers of a machine share."""

import time
from collections import deque
from typing import Any

STEPS = 4  # that are kept, so that the last but one is seen whole


class Recording:
    """Of compute; a session records its exchanges itself."""

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._steps: deque[list[dict[str, Any]]] = deque(maxlen=STEPS)
        self._step = 0
        self._since = 0.0

    def begin(self, step: int) -> None:
        """Of a step."""
        self._step = step
        self._steps.append([])
        self._since = time.monotonic()

    def reached(self, kind: str) -> None:
        """The end of forward, backward or optimizer."""
        now = time.monotonic()
        self._steps[-1].append(self._event(kind, self._since, now))
        self._since = now

    def timeline(self, session: Any) -> dict[str, Any]:
        """With what the session recorded of the same steps."""
        document: dict[str, Any] = session.timeline()
        begin = session.core.timeline_begin
        first = self._step - len(self._steps) + 1
        events = []
        for event in document["traceEvents"]:
            if event["ph"] == "X" and event["args"]["step"] >= first:
                events.append(_moved(event, begin))
        document["traceEvents"] = events + [event for step in self._steps for event in step]
        return document

    def _event(self, kind: str, start: float, end: float) -> dict[str, Any]:
        args = {"kind": kind, "step": self._step, "start": start, "end": end}
        event = {"ph": "X", "name": kind, "cat": kind, "pid": self._rank, "tid": 0}
        return event | {"ts": start * 1e6, "dur": (end - start) * 1e6, "args": args}


def _moved(event: dict[str, Any], seconds: float) -> dict[str, Any]:
    args = event["args"]
    args |= {"start": args["start"] + seconds, "end": args["end"] + seconds}
    return event | {"ts": event["ts"] + seconds * 1e6, "args": args}
