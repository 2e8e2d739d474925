"""Steps of riffle against torch DDP on Gloo, on this host: PYTHONPATH=build/release/python
.venv/bin/python bench/ddp_speed.py [--workers 2,4]

One run: every worker process trains the same model under all contenders in turns of a few steps, so
that whatever else the machine does hits all of them alike. Printed: the median over turns of the
time per step (slowest worker), and DDP's over ours. Peak memory is of a process per contender.
"""

import argparse
import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import torch
import torch.distributed as dist

import riffle
from riffle.bench.models import MODELS

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "python"))
from processes import gather, job_name, start


class Contender:
    """A model being trained under one way of synchronizing."""

    def __init__(self, name, model_name, rank, size, job):
        make, self.data = MODELS[model_name]
        torch.manual_seed(1)
        self.name, model = name, make()
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
        self.random = torch.Generator().manual_seed(rank)
        if name == "torch-ddp":
            self.model = torch.nn.parallel.DistributedDataParallel(model)
        else:
            self.model = model
            # Exchanges of one session may still be under way while the next contender runs.
            engine = riffle.shm_engine(f"{job}-{name}", rank, size)
            self.session = riffle.sync(model, self.optimizer, name, engine=engine)

    def finish(self):
        """Nobody leaves while another still exchanges with it."""
        if self.name != "torch-ddp":
            self.session.finish()
        dist.barrier()

    def steps(self, count):
        began = time.perf_counter()
        for _ in range(count):
            x, y = self.data(self.random)
            self.optimizer.zero_grad()
            torch.nn.functional.cross_entropy(self.model(x), y).backward()
            self.optimizer.step()
        return (time.perf_counter() - began) / count


def join(rank, size, folder):
    torch.set_num_threads(1)
    os.environ.update(GLOO_SOCKET_IFNAME="lo")
    store = dist.FileStore(os.path.join(folder, "store"), size)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size)


def race(rank, size, job, folder, model_name, names, turns, steps):
    join(rank, size, folder)
    contenders = [Contender(name, model_name, rank, size, job) for name in names]
    for contender in contenders:
        contender.steps(8)
    times = {name: [] for name in names}
    for turn in range(turns):
        for contender in contenders[turn % len(names) :] + contenders[: turn % len(names)]:
            dist.barrier()
            times[contender.name].append(contender.steps(steps))
    for contender in contenders:
        contender.finish()
    return times


def memory(rank, size, job, folder, model_name, name):
    join(rank, size, folder)
    contender = Contender(name, model_name, rank, size, job)
    contender.steps(10)
    contender.finish()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def on_workers(size, function, *arguments):
    with tempfile.TemporaryDirectory() as folder:
        job = job_name()
        workers = [start(function, r, size, job, folder, *arguments) for r in range(size)]
        answers = gather(workers, 300)
    for fine, value in answers:
        if not fine:
            sys.exit(value)
    return [value for _, value in answers]


def measure(size, model_name, names, turns, steps):
    """Rows of one table."""
    answers = on_workers(size, race, model_name, names, turns, steps)
    rows = []
    for name in names:
        per_turn = [max(worker[name][turn] for worker in answers) for turn in range(turns)]
        peak = max(on_workers(size, memory, model_name, name))
        rows.append(
            {
                "workers": size,
                "model": model_name,
                "contender": name,
                "seconds_per_step": median(per_turn),
                "peak_bytes": peak,
            }
        )
    ddp = next(row for row in rows if row["contender"] == "torch-ddp")
    for row in rows:
        row["speedup"] = ddp["seconds_per_step"] / row["seconds_per_step"]
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--workers", default="2,4")
    parser.add_argument("--models", default="cnn,gpt,deepfm")
    parser.add_argument("--strategies", default="mg-wfbp,ddp,dear,sesgd")
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--format", choices=["table", "json"], default="table")
    given = parser.parse_args()
    names = ["torch-ddp", *given.strategies.split(",")]
    rows = []
    if given.format == "table":
        heads = f"{'workers':>7}  {'model':8}{'contender':12}{'ms/step':>9}"
        print(heads + f"{'DDP over it':>13}{'peak MB':>9}")
    for size in map(int, given.workers.split(",")):
        for model in given.models.split(","):
            for row in measure(size, model, names, given.turns, given.steps):
                rows.append(row)
                if given.format == "table":
                    print(
                        f"{size:7}  {model:8}{row['contender']:12}"
                        f"{1e3 * row['seconds_per_step']:9.2f}{row['speedup']:12.2f}x"
                        f"{row['peak_bytes'] / 1e6:9.0f}",
                        flush=True,
                    )
    if given.format == "json":
        print(json.dumps({"results": rows}, indent=1))


if __name__ == "__main__":
    main()
