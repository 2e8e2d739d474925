"""All-reduce between hosts: Riffle beside Gloo and Open MPI, over TCP, on one machine.

    python3 bench/network_allreduce.py [--hosts 2,4] [--sizes 4KiB,...] [--calls 200]
        [--latency 2.5ms] [--bandwidth 1Gbps] [--dilate 8]

Every worker runs on a host of `riffle lab`, so that nobody can use shared memory; without --latency
packets move as fast as the switch can. With --latency Riffle takes the algorithm that its cost
model finds cheapest on that network, as a session does, and what the model predicts stands beside
what was measured. With --dilate times are those of the true network.
Contenders run block by block in a random order, each block
several calls, so that all meet the same moods of the machine; a call lasts from when its last
worker calls until its last worker has the result. Gloo runs under SCHED_BATCH, without which it is
slower on shared cores.
"""

import argparse
import contextlib
import json
import os
import random
import re
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = ROOT / "build/release/bin"
ROUNDS = 4
WARM_UP = 3
UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20}


def size_of(text):
    number, unit = re.fullmatch(r"(\d+)(B|KiB|MiB)", text).groups()
    return int(number) * UNITS[unit]


def seconds_of(text):
    number, unit = re.fullmatch(r"([\d.]+)(ns|us|ms|s)", text).groups()
    return float(number) * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}[unit]


def say(text):
    """One line that replaces the last, on a terminal."""
    if sys.stderr.isatty():
        print(f"\r{text:60}\r", end="", file=sys.stderr, flush=True)


class Hosts:
    """A lab whose hosts wait for what we run on them."""

    def __init__(self, count, folder, latency, bandwidth, dilate=1.0, command=BIN / "riffle"):
        self.count = count
        self.folder = folder / f"hosts-{count}"
        self.folder.mkdir()
        self.log = (folder / f"lab-{count}.log").open("w+")
        self.cluster = f"flat:{count},latency={latency},bandwidth={bandwidth}"
        self.is_known = seconds_of(latency) > 0  # else it is as fast as it is
        wait = f"echo $$ > {self.folder}/$RANK.new; mv {self.folder}/$RANK.new {self.folder}/$RANK"
        self.command = [str(command), "lab", self.cluster, "--dilate", str(dilate), "--force"]
        self.command += ["--", "sh", "-c", f"{wait}; exec sleep 86400"]

    def __enter__(self):
        self.lab = subprocess.Popen(self.command, stderr=self.log)
        deadline = time.monotonic() + 60
        while sum(path.name.isdigit() for path in self.folder.iterdir()) < self.count:
            if self.lab.poll() is not None or time.monotonic() > deadline:
                self.log.seek(0)
                sys.exit(f"network_allreduce: the lab did not start\n{self.log.read()}")
            time.sleep(0.05)
        self.processes = [(self.folder / str(i)).read_text().strip() for i in range(self.count)]
        return self

    def __exit__(self, *_):
        self.lab.terminate()
        self.lab.wait()
        self.log.seek(0)
        print(*(line for line in self.log if "set the pace" in line), end="", file=sys.stderr)
        self.log.close()

    @staticmethod
    def address(host):
        return f"198.18.0.{host + 1}"

    def inside(self, host):
        """What to put before a command."""
        return ["nsenter", "-t", self.processes[host], "--net", "--mount", "--uts", "--"]


def mpirun_options(hosts, folder):
    """So that mpirun starts its helpers in the namespaces, and all goes over their interfaces."""
    agent = folder / f"agent-{hosts.count}"
    cases = "".join(f"{hosts.address(i)}) pid={pid};;\n" for i, pid in enumerate(hosts.processes))
    agent.write_text(
        f"#!/bin/sh\ncase $1 in\n{cases}esac\nshift\n"
        'exec nsenter -t $pid --net --mount --uts -- sh -c "$*"\n'
    )
    agent.chmod(0o700)
    options = {
        "plm_rsh_agent": agent,
        "pml": "ob1",
        "btl": "tcp,self",
        "btl_tcp_if_include": "eth0",
        "oob_tcp_if_include": "eth0",
    }
    return [word for key, value in options.items() for word in ("--mca", key, str(value))]


class Contender:
    """N workers that run blocks of calls when told; bench/allreduce/worker.h says how they talk."""

    def __init__(self, name, hosts, folder, python):
        self.name = name
        self.count = hosts.count
        path = str(folder / f"{name}-{self.count}")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen(self.count)
            listener.settimeout(60)
            self.processes = list(getattr(self, f"start_{name}")(hosts, path, folder, python))
            self.workers = [None] * self.count
            for _ in range(self.count):
                connection = listener.accept()[0]
                connection.settimeout(120)
                file = connection.makefile("rw")
                self.workers[int(file.readline())] = file

    def start_riffle(self, hosts, path, _folder, _python):
        environment = os.environ | {
            "WORLD_SIZE": str(self.count),
            "LOCAL_RANK": "0",
            "LOCAL_WORLD_SIZE": "1",
            "RIFFLE_STORE": f"{hosts.address(0)}:29000",
            "RIFFLE_JOB": "bench",
            "RIFFLE_TOKEN": secrets.token_hex(16),
            "RIFFLE_MACHINE_RANKS": str(self.count),
        }
        known = [hosts.cluster] if hosts.is_known else []
        for rank in range(self.count):
            yield subprocess.Popen(
                [*hosts.inside(rank), str(BIN / "allreduce_riffle"), path, "far", *known],
                env=environment | {"RANK": str(rank)},
            )

    def start_gloo(self, hosts, path, _folder, python):
        quiet = {"PYTHONWARNINGS": "ignore", "TORCH_CPP_LOG_LEVEL": "ERROR"}
        environment = os.environ | {"GLOO_SOCKET_IFNAME": "eth0"} | quiet
        store = f"tcp://{hosts.address(0)}:29100"
        for rank in range(self.count):
            worker = [
                python,
                str(BIN / "allreduce_gloo.py"),
                path,
                str(rank),
                str(self.count),
                store,
            ]
            yield subprocess.Popen([*hosts.inside(rank), *worker], env=environment)

    def start_openmpi(self, hosts, path, folder, _python):
        mca = mpirun_options(hosts, folder)
        places = ",".join(f"{hosts.address(i)}:1" for i in range(self.count))
        command = ["mpirun", "--allow-run-as-root", "--bind-to", "none", *mca]
        command += ["--host", places, "-n", str(self.count), str(BIN / "allreduce_openmpi"), path]
        yield subprocess.Popen([*hosts.inside(0), *command])

    def run(self, size, calls):
        for worker in self.workers:
            worker.write(f"run {size} {calls}\n")
            worker.flush()
        called, done = [0] * calls, [0] * calls
        for worker in self.workers:
            for call in range(calls):
                try:
                    before, after = map(int, worker.readline().split())
                except (TimeoutError, ValueError) as problem:
                    sys.exit(f"{self.name}: no answer for {size} bytes, or a wrong sum ({problem})")
                called[call] = max(called[call], before)
                done[call] = max(done[call], after)
        return [(d - c) * 1e-9 for c, d in zip(called, done, strict=True)]

    def stop(self):
        for worker in self.workers:
            worker.close()
        for process in self.processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def measure(count, arguments, names, sizes, folder):
    cells = {(name, size): [] for name in names for size in sizes}
    network = (arguments.latency, arguments.bandwidth, arguments.dilate)
    with Hosts(count, folder, *network) as hosts, contextlib.ExitStack() as running:
        contenders = {}
        for name in names:
            contenders[name] = Contender(name, hosts, folder, arguments.python)
            running.callback(contenders[name].stop)
        order = random.Random(arguments.seed)
        for turn in range(ROUNDS):
            blocks = list(cells)
            order.shuffle(blocks)
            for name, size in blocks:
                say(f"{count} hosts, round {turn + 1} of {ROUNDS}: {name}, {size} bytes")
                calls = arguments.calls if size < 2**20 else max(8, arguments.calls // 10)
                times = contenders[name].run(size, WARM_UP + (calls + ROUNDS - 1) // ROUNDS)
                cells[name, size] += [time / arguments.dilate for time in times[WARM_UP:]]
    say("")
    return cells


def predicted(count, arguments, size):
    """The algorithm that the cost model chooses, and the seconds it predicts."""
    if seconds_of(arguments.latency) == 0:
        return {}
    cluster = f"flat:{count},latency={arguments.latency},bandwidth={arguments.bandwidth}"
    command = [str(BIN / "allreduce_riffle"), "predict", cluster, str(size)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    algorithm, seconds = done.stdout.split()
    return {"algorithm": algorithm, "predicted_seconds": float(seconds)}


def rows_of(count, cells, names, sizes, arguments):
    for size in sizes:
        ours = sorted(cells["riffle", size])
        for name in names:
            times = sorted(cells[name, size])
            p50, p99 = times[len(times) // 2], times[min(len(times) - 1, len(times) * 99 // 100)]
            row = {
                "workers": count,
                "bytes": size,
                "contender": name,
                "p50_seconds": p50,
                "p99_seconds": p99,
                "times_riffle": p50 / ours[len(ours) // 2],
            }
            yield row | (predicted(count, arguments, size) if name == "riffle" else {})


def print_table(results):
    heads = f"{'p50 us':>10} {'p99 us':>10} {'times riffle':>12}"
    print(f"hosts     bytes  contender {heads}  cost model")
    for row in results:
        p50, p99 = row["p50_seconds"], row["p99_seconds"]
        who = f"{row['workers']:5} {row['bytes']:9}  {row['contender']:9}"
        line = f"{who} {p50 * 1e6:10.0f} {p99 * 1e6:10.0f} {row['times_riffle']:12.2f}"
        if "predicted_seconds" in row:
            model = row["predicted_seconds"]
            line += f"  {row['algorithm']} {model * 1e6:.0f} us, measured {p50 / model:.3f} of it"
        print(line)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", default="2,4")
    parser.add_argument("--sizes", default="4KiB,16KiB,64KiB,256KiB,1MiB,4MiB,16MiB,64MiB")
    parser.add_argument("--against", default="gloo,openmpi")
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--latency", default="0ms")
    parser.add_argument("--bandwidth", default="100Gbps")
    parser.add_argument("--dilate", type=float, default=1)
    parser.add_argument("--seed", type=int, default=1)
    own = ROOT / ".venv/bin/python"
    python = str(own) if own.exists() else sys.executable
    parser.add_argument("--python", default=python, help="one that has torch")
    parser.add_argument("--format", choices=["table", "json"], default="table")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("network_allreduce: entering the hosts of a lab needs root")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("network_allreduce: told to stop"))
    names = ["riffle", *filter(None, arguments.against.split(","))]
    sizes = [size_of(text) for text in arguments.sizes.split(",")]
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for count in map(int, arguments.hosts.split(",")):
            cells = measure(count, arguments, names, sizes, Path(folder))
            results += rows_of(count, cells, names, sizes, arguments)
    if arguments.format == "json":
        print(json.dumps({"results": results}, indent=1))
        return
    print_table(results)


if __name__ == "__main__":
    main()
