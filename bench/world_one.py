"""What riffle.sync adds to a step where there is only one worker: PYTHONPATH=build/release/python
.venv/bin/python bench/world_one.py

The same model twice, with and without `riffle.sync`, in turns of a few steps of about 10 ms, so
that whatever else the machine does hits both alike. Of each pair of turns the added share is
taken; printed are their median and quartiles. A third model, also without, takes turns as well:
its difference is what the machine alone makes of nothing.
"""

import argparse
import json
import time
from statistics import median, quantiles

import torch

import riffle

WIDTH, BATCH = 512, 64
NAMES = ("plain", "riffle", "plain again")


class Loop:
    """An ordinary loop, with or without the two lines."""

    def __init__(self, name):
        torch.manual_seed(1)
        layers = [torch.nn.Linear(WIDTH, WIDTH) for _ in range(6)]
        self.model = torch.nn.Sequential(
            *(m for layer in layers for m in (layer, torch.nn.ReLU())), torch.nn.Linear(WIDTH, 10)
        )
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)
        self.data = torch.randn(BATCH, WIDTH), torch.randint(0, 10, (BATCH,))
        if name == "riffle":
            self.session = riffle.sync(self.model, self.optimizer, "mg-wfbp")

    def seconds_per_step(self, count):
        x, y = self.data
        began = time.perf_counter()
        for _ in range(count):
            self.optimizer.zero_grad()
            torch.nn.functional.cross_entropy(self.model(x), y).backward()
            self.optimizer.step()
        return (time.perf_counter() - began) / count


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--turns", type=int, default=150)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--format", choices=["table", "json"], default="table")
    given = parser.parse_args()
    torch.set_num_threads(1)
    loops = {name: Loop(name) for name in NAMES}
    for loop in loops.values():
        loop.seconds_per_step(10)
    times = {name: [] for name in NAMES}
    for turn in range(given.turns):
        for name in NAMES[turn % 3 :] + NAMES[: turn % 3]:
            times[name].append(loops[name].seconds_per_step(given.steps))
    rows = []
    for name in NAMES:
        added = [t / p - 1 for t, p in zip(times[name], times["plain"], strict=True)]
        low, _, high = quantiles(added, n=4)
        step = median(times[name])
        row = {"loop": name, "seconds_per_step": step, "added": median(added)}
        rows.append({**row, "lower_quartile": low, "upper_quartile": high})
    if given.format == "json":
        print(json.dumps({"results": rows}, indent=1))
        return
    print(f"{'loop':12}{'ms/step':>9}{'added':>9}   quartiles")
    for row in rows:
        spread = f"{row['lower_quartile']:+.2%} to {row['upper_quartile']:+.2%}"
        step = 1e3 * row["seconds_per_step"]
        print(f"{row['loop']:12}{step:9.2f}{row['added']:+9.2%}   {spread}")


if __name__ == "__main__":
    main()
