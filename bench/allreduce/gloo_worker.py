"""One worker of `riffle bench allreduce`: Gloo through torch's c10d.

    gloo_worker.py SOCKET RANK SIZE STORE

It does what worker.h says. It runs under SCHED_BATCH: Gloo's threads wake each other for every
message, and on shared cores the default policy lets them preempt each other so that it gets slower.
"""

import datetime
import os
import socket
import sys
import time

os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")

import torch
import torch.distributed as dist


def run_block(rank: int, size: int, bytes_: int, calls: int) -> str:
    values = torch.zeros(bytes_ // 4)
    token = torch.zeros(1)
    lines = []
    for call in range(calls):
        values.fill_(1 + rank + call % 1000)
        dist.all_reduce(token)  # meets the others
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        dist.all_reduce(values)
        after = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        lines.append(f"{before} {after}\n")
        wanted = sum(1 + r + call % 1000 for r in range(size))
        if values[0] != wanted or values[-1] != wanted:
            return "wrong\n"
    return "".join(lines)


def main() -> None:
    name, rank, size, store = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=store, rank=rank, world_size=size, timeout=datetime.timedelta(minutes=5)
    )
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(name if name.startswith("/") else "\0" + name)
        with connection.makefile("rw") as file:
            file.write(f"{rank}\n")
            file.flush()
            for line in file:
                _, bytes_, calls = line.split()
                file.write(run_block(rank, size, int(bytes_), int(calls)))
                file.flush()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
