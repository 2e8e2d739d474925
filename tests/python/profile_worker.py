"""A training script as a user writes one, with known times: riffle profile runs it.

profile_worker.py ENGINE STRATEGY: ENGINE is riffle, or gloo for a process group.
"""

import sys
from pathlib import Path

import torch

import riffle
from riffle import emulated

# Milliseconds, no two alike, so that a time in a wrong place shows.
FORWARD = (6, 18, 12, 24)
BACKWARD = (30, 10, 40, 20)


def trace() -> riffle.Trace:
    layers = [
        riffle.Layer(f"l{i}", 1000 * (i + 1), forward / 1e3, backward / 1e3)
        for i, (forward, backward) in enumerate(zip(FORWARD, BACKWARD, strict=True))
    ]
    return riffle.Trace(layers, "known")


def main(engine: str, strategy: str) -> None:
    group = None
    if engine == "gloo":
        torch.distributed.init_process_group("gloo")
        group = riffle.c10d()
    model = emulated.Model(trace())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with riffle.sync(model, optimizer, strategy, engine=group):
        for _ in range(10):
            optimizer.zero_grad()
            model().backward()
            optimizer.step()
    if group is not None:
        torch.distributed.destroy_process_group()


def threads_of_gloo() -> list[str]:
    names = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
    return [name for name in names if "gloo" in name]


if __name__ == "__main__":
    main(*sys.argv[1:])
    # One that outlives its group may abort the process when the interpreter ends.
    if left := threads_of_gloo():
        sys.exit(f"left behind: {left}")
