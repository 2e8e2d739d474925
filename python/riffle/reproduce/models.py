"""Models whose compute is emulated or simulated: a built-in trace, or a published one of this
folder, its times scaled to what a device takes."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PUBLISHED = Path(__file__).parent / "traces"


@dataclass(frozen=True)
class Model:
    """`compute`: seconds of forward and backward together; None: as the trace has them."""

    name: str
    compute: float | None = None

    def file(self, riffle: str, folder: Path) -> Path:
        """A trace file, made where there is none yet."""
        path = folder / f"{self.name}-{self.compute or 'own'}.json"
        if not path.exists():
            path.write_text(json.dumps(scaled(self._trace(riffle), self.compute)))
        return path

    def _trace(self, riffle: str) -> dict[str, Any]:
        own = PUBLISHED / f"{self.name}.json"
        if own.exists():
            return json.loads(own.read_text())
        words = [riffle, "trace", "show", self.name, "--format", "json"]
        done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
        return json.loads(done.stdout)


def scaled(trace: dict[str, Any], compute: float | None) -> dict[str, Any]:
    """The same with all times in proportion."""
    if compute is None:
        return trace
    whole = sum(layer["forward"] + layer["backward"] for layer in trace["layers"])
    layers = [
        layer | {part: layer[part] * compute / whole for part in ("forward", "backward")}
        for layer in trace["layers"]
    ]
    return trace | {"layers": layers, "optimizer_step": 0}
