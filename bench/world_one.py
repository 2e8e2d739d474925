"""What riffle.sync adds to a step where there is only one worker: PYTHONPATH=build/release/python
.venv/bin/python bench/world_one.py

The same model twice, with and without `riffle.sync`, in turns of a few steps, so that whatever else
the machine does hits both alike. Layers are small: what is added does not grow with them, and would
be lost in the noise of steps of 10 ms, of which it is printed as a share. Of each pair of turns the
difference is taken; printed are the median and quartiles. A third model, also without, takes turns
as well: its difference is what the machine alone makes of nothing.
"""

import argparse
import json
import time
from statistics import median, quantiles

import torch

import riffle

WIDTH, BATCH = 16, 4
USUAL = 10e-3  # seconds, of a step
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
    parser.add_argument("--turns", type=int, default=600)
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
        added = [t - p for t, p in zip(times[name], times["plain"], strict=True)]
        low, _, high = quantiles(added, n=4)
        row = {"loop": name, "seconds_per_step": median(times[name])}
        spread = {"lower_quartile": low, "upper_quartile": high}
        rows.append({**row, "added_seconds": median(added), **spread})
    if given.format == "json":
        print(json.dumps({"results": rows}, indent=1))
        return
    print(f"{'loop':12}{'us/step':>9}{'added us':>10}{'of 10 ms':>10}   quartiles of added us")
    for row in rows:
        step, added, low, high = (
            1e6 * row[key]
            for key in ("seconds_per_step", "added_seconds", "lower_quartile", "upper_quartile")
        )
        share = row["added_seconds"] / USUAL
        print(f"{row['loop']:12}{step:9.0f}{added:10.1f}{share:10.2%}   {low:.1f} to {high:.1f}")


if __name__ == "__main__":
    main()
