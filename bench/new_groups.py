"""128 overlapping groups of 8 workers, on Gloo and on riffle: PYTHONPATH=build/release/python
.venv/bin/python bench/new_groups.py [--workers 8] [--groups 128] [--store tcp]

Rounds of the two backends take turns in one run, each with fresh processes. Printed, of the slowest
worker: the whole of the new_group calls, and what of it was spent in the backend's own code (of
riffle alone; torch does the rest for any backend). Every group is used once afterwards, off the
clock, so that none is counted that does not work.

Gloo meets at the store for every group, riffle does not, so the ratio depends on the store. By
default it is the TCPStore of torchrun, in a process of its own; --store file is a FileStore.
"""

import argparse
import contextlib
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import torch
import torch.distributed as dist

import riffle.distributed

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "python"))
from processes import gather, start

BACKENDS = ("gloo", "riffle")


def lists_of_ranks(workers, groups):
    """The same on all workers."""
    draw = random.Random(1)
    return [sorted(draw.sample(range(workers), draw.randint(2, workers))) for _ in range(groups)]


class OwnShare:
    """Counts the time inside the backend's own module."""

    def __init__(self):
        self.seconds = 0.0
        self._make = riffle.distributed._c10d_backend.make_backend
        riffle.distributed._c10d_backend.make_backend = self

    def __call__(self, *arguments):
        began = time.perf_counter()
        try:
            return self._make(*arguments)
        finally:
            self.seconds += time.perf_counter() - began


def make_groups(rank, workers, place, backend, groups):
    """place: a file, or the port of a TCPStore."""
    os.environ.update(GLOO_SOCKET_IFNAME="lo", RIFFLE_INTERFACE="lo", MASTER_ADDR="127.0.0.1")
    if isinstance(place, int):
        store = dist.TCPStore("127.0.0.1", place, is_master=False)
    else:
        store = dist.FileStore(place, workers)
    dist.init_process_group(backend, store=store, rank=rank, world_size=workers)
    dist.barrier()
    own, lists = OwnShare(), lists_of_ranks(workers, groups)
    began = time.perf_counter()
    made = [dist.new_group(ranks) for ranks in lists]
    whole = time.perf_counter() - began
    for ranks, group in zip(lists, made, strict=True):
        if rank in ranks:
            ones = torch.ones(1)
            dist.all_reduce(ones, group=group)
            assert ones.item() == len(ranks), (ranks, ones)
    dist.barrier()
    return whole, own.seconds


@contextlib.contextmanager
def meeting_place(store):
    """Of one round."""
    if store == "tcp":
        server = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        yield server.port
    else:
        with tempfile.TemporaryDirectory() as folder:
            yield os.path.join(folder, "store")


def measure(workers, backend, groups, store):
    """Of the slowest worker: the whole, the backend's own share."""
    with meeting_place(store) as place:
        started = [start(make_groups, r, workers, place, backend, groups) for r in range(workers)]
        answers = gather(started, 300)
    for fine, value in answers:
        if not fine:
            sys.exit(value)
    return tuple(max(value[i] for _, value in answers) for i in range(2))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n")[0],
        epilog="Example: bench/new_groups.py --workers 4 --groups 32 --rounds 1",
    )
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--groups", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--store", choices=["tcp", "file"], default="tcp")
    given = parser.parse_args()
    if given.workers < 2 or given.groups < 1 or given.rounds < 1:
        parser.error("at least two workers, one group and one round")
    rounds = [
        {name: measure(given.workers, name, given.groups, given.store) for name in BACKENDS}
        for _ in range(given.rounds)
    ]
    for backend in BACKENDS:
        whole = [times[backend][0] for times in rounds]
        text = f"{backend:8}{1e3 * median(whole):9.1f} ms ({1e3 * min(whole):.1f} to "
        text += f"{1e3 * max(whole):.1f})"
        if backend == "riffle":
            text += f", own share {1e3 * median(times[backend][1] for times in rounds):.2f} ms"
        print(text)
    ratios = [times["gloo"][0] / times["riffle"][0] for times in rounds]
    print(f"gloo over riffle {median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
