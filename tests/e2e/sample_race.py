"""A race.json as a race writes it, made of simulations: for tests of pages where none was run.

Figures are those of `riffle simulate` on a cluster with racks; measurements are predictions with
a few per cent of noise, losses an exponential with noise, from a fixed seed.
"""

import json
import math
import random
import re
import subprocess
import tempfile
from pathlib import Path

CLUSTER = "racks:2x4,inner=0.2ms/10Gbps,outer=1ms/4Gbps"
CONTENDERS = [
    "torch-ddp",
    "wfbp",
    "mg-wfbp",
    "sesgd",
    "ds-sync:pattern=bottleneck",
    "dasgd",
    "dear",
]
PEERS = {"torch-ddp": "ddp"}
TARGET = 0.97


def data_of(page: str) -> dict:
    """What a page holds."""
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])


def simulated(riffle: str) -> dict:
    specs = [PEERS.get(name, name) for name in CONTENDERS]
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        words = [word for spec in specs for word in ("--strategy", spec)]
        command = [riffle, "simulate", "--trace", "resnet50", "--cluster", CLUSTER, *words]
        subprocess.run([*command, "--report", page], check=True, capture_output=True, timeout=60)
        return data_of(page.read_text())


def training(seconds: float, steps: int, pace: float, noise: random.Random) -> dict:
    """Loss and accuracy of a run that ends when the target is reached."""
    losses = [
        2.3 * math.exp(-pace * i / steps) * noise.uniform(0.85, 1.15) + 0.02 for i in range(steps)
    ]
    evaluations = [
        {
            "step": i,
            "seconds": i * seconds,
            "accuracy": 0.98 * (1 - 0.9 * math.exp(-4.9 * i / steps)),
        }
        for i in range(10, steps + 1, 10)
    ]
    evaluations[-1]["accuracy"] = TARGET + 0.002
    return {
        "curve": {
            "seconds": [(i + 1) * seconds for i in range(steps)],
            "loss": losses,
            "step": list(range(steps)),
        },
        "evaluations": evaluations,
        "steps": steps,
        "final_loss": losses[-1],
        "accuracy": evaluations[-1]["accuracy"],
        "seconds_to_target": steps * seconds,
    }


def result(name: str, simulation: dict, noise: random.Random) -> dict:
    predicted = simulation["seconds_per_step"]
    step = predicted * noise.uniform(0.96, 1.06)
    compute = simulation["compute_seconds"] * noise.uniform(0.99, 1.02)
    peer = name in PEERS
    steps = 120 if peer or "wfbp" in name or name == "dear" else 140
    return {
        "contender": name,
        "seconds_per_step": step,
        "predicted_seconds_per_step": predicted,
        "compute_seconds": compute,
        "exposed_communication_seconds": max(0.0, step - compute),
        "hidden_communication_seconds": None
        if peer
        else simulation["hidden_communication_seconds"],
        "predicted": {
            "compute_seconds": simulation["compute_seconds"],
            "exposed_communication_seconds": simulation["exposed_communication_seconds"],
        },
        "failed": None,
        "how": "torch 2.13.0, DistributedDataParallel over Gloo, workers under SCHED_BATCH"
        if peer
        else "riffle-worker over our sockets",
        "groups": None if peer else simulation["groups"],
        "timeline": None if peer else simulation["timeline"],
        "timeline_file": None if peer else f"{name.split(':')[0]}.perfetto.json",
        **training(step, steps, 4.5, noise),
    }


def sample_race(riffle: str) -> dict:
    noise = random.Random(16)
    document = simulated(riffle)
    results = [
        result(name, simulation, noise)
        for name, simulation in zip(CONTENDERS, document["results"], strict=True)
    ]
    results.append(
        {"contender": "decent-dp", "failed": "decent-dp: rank 3 ended with exit code 1 in step 12"}
    )
    good = sorted((r for r in results if not r["failed"]), key=lambda r: r["seconds_to_target"])
    for rank, each in enumerate(good, 1):
        each["rank"] = rank
        each["speedup"] = results[0]["seconds_to_target"] / each["seconds_to_target"]
    return {
        "riffle": "race",
        "version": 1,
        "command": f"riffle race --task digits --target {TARGET} --cluster {CLUSTER}",
        "cluster": document["cluster"],
        "topology": document["topology"],
        "dilate": 4,
        "shrink": 1,
        "task": "digits",
        "trace": None,
        "target": TARGET,
        "workers": document["workers"],
        "seed": 1,
        "interrupted": False,
        "results": results,
    }
