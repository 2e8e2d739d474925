"""Records torch_profile.json: a small CNN, batch 32, two steps on the CPU, then trims the file.

Usage: python make_torch_profile.py OUTPUT        (made with torch 2.13)

Trimmed: operators below another operator, arguments no reader needs, names of the machine.
"""

import json
import sys
from pathlib import Path

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule

KEPT_ARGS = ("External id", "Sequence number", "Fwd thread id", "Input Dims", "Input type")
FUNCTION = "autograd::engine::evaluate_function: "


def record(path: Path) -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * 49, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    images = torch.randn(32, 1, 28, 28)
    labels = torch.randint(0, 10, (32,))
    with profile(
        activities=[ProfilerActivity.CPU],
        record_shapes=True,
        schedule=schedule(wait=1, warmup=2, active=2),
        on_trace_ready=lambda done: done.export_chrome_trace(str(path)),
    ) as profiler:
        for _ in range(5):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            loss.item()
            profiler.step()


def trim(path: Path) -> None:
    document = json.loads(path.read_text())
    for key in ("host_name", "traceName", "trace_id"):
        document.pop(key, None)
    kept = []
    end = 0.0  # of the operator, or of the autograd function, that is open
    timed = [e for e in document["traceEvents"] if e["ph"] == "X" and e["cat"] != "Trace"]
    for event in sorted(timed, key=lambda e: e["ts"]):
        if event["cat"] == "cpu_op":
            # Of what is inside a function only the function proper is kept.
            proper = event["name"].endswith("Backward0") or "AccumulateGrad" in event["name"]
            if event["ts"] < end and not proper:
                continue
            end = max(end, event["ts"] + event["dur"])
        event["args"] = {k: v for k, v in event["args"].items() if k in KEPT_ARGS}
        event["pid"] = event["tid"] = 1
        kept.append(event)
    document["traceEvents"] = kept
    lines = ",\n".join(json.dumps(event) for event in kept)
    document["traceEvents"] = []
    head = json.dumps(document).removesuffix("[]}")
    path.write_text(f"{head}[\n{lines}\n]}}\n")


if __name__ == "__main__":
    output = Path(sys.argv[1])
    record(output)
    trim(output)
