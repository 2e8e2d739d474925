#!/usr/bin/env python3
# ruff: noqa: E501 -- the page is prose
"""Writes docs/scaling.md: the scaling study of MG-WFBP, extended to every strategy.

    python3 bench/scaling.py --riffle build/release/bin/riffle > docs/scaling.md

Published traces are read from ../shared/data beside the repository; what needs them is left out
with a sentence where they are absent.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
GOOGLENET = ROOT.parent / "shared/data/traces/googlenet-k80/tmp8comm.log"
COUNTS = [4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048]
SHOWN = [4, 16, 64, 256, 1024, 2048]
# Latency and bandwidth of a worker's link.
NETWORKS = {"10 GbE": (50e-6, 10e9 / 8), "56 Gb InfiniBand": (5e-6, 56e9 / 8)}
WHOLE_WORLD = [
    "bsp",
    "single",
    "hierarchical",
    "wfbp",
    "ddp",
    "mg-wfbp:merge=paper",
    "mg-wfbp",
    "asc-wfbp",
    "dear",
    "local-sgd",
    "dasgd",
    "diloco",
]
GROUPS = ["gossip", "sesgd", "sesgd:order=combine-then-adapt", "ds-sync"]
# TPDS 2021, 4 nodes x 4 V100: compute, WFBP, SyncEASGD, MG-WFBP in ms.
TPDS = {
    "resnet152": [
        ("10GbE", "f32", 883.1, 1233.4, 1360.1, 1126.1),
        ("10GbE", "f16", 388.6, 757.1, 636.3, 629.7),
        ("56GbIB", "f32", 883.1, 1082.1, 1143.5, 1089.3),
        ("56GbIB", "f16", 388.6, 531.0, 518.2, 486.3),
    ],
    "inception-v4": [
        ("10GbE", "f32", 610.8, 943.7, 900.0, 780.6),
        ("10GbE", "f16", 279.7, 591.0, 477.1, 423.2),
        ("56GbIB", "f32", 610.8, 767.4, 746.2, 661.3),
        ("56GbIB", "f16", 279.7, 430.2, 373.2, 363.8),
    ],
    "densenet161": [
        ("10GbE", "f32", 477.7, 832.4, 682.6, 628.0),
        ("10GbE", "f16", 253.0, 614.9, 399.4, 360.4),
        ("56GbIB", "f32", 477.7, 601.9, 596.8, 527.4),
        ("56GbIB", "f16", 253.0, 400.0, 330.0, 321.1),
    ],
    "densenet201": [
        ("10GbE", "f32", 360.9, 763.6, 512.8, 456.6),
        ("10GbE", "f16", 215.2, 614.2, 406.5, 361.8),
        ("56GbIB", "f32", 360.9, 512.4, 437.8, 405.9),
        ("56GbIB", "f16", 215.2, 397.7, 354.4, 331.3),
    ],
}
TPDS_FITS = {"10GbE": "fit:16,a=908us,b=0.74ns", "56GbIB": "fit:16,a=236us,b=0.406ns"}
# The authors' fits for 8 workers on 10GbE: of messages up to 2 MiB, and of large ones. What large
# messages cost more, for every byte.
LARGE = 1.49 / 0.857
TPDS_LARGE_FIT = f"fit:16,a=908us,b={0.74 * LARGE!r}ns"


class Riffle:
    def __init__(self, program):
        self.program = program

    def json(self, *arguments):
        done = subprocess.run(
            [self.program, *arguments, "--format", "json"],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            sys.exit(done.stderr.strip().splitlines()[-1])
        return json.loads(done.stdout)

    def sweep(self, trace, clusters, strategies):
        """Results by strategy and worker count."""
        arguments = ["sweep", "--trace", str(trace)]
        for cluster in clusters:
            arguments += ["--cluster", cluster]
        if len(clusters) == 1:
            arguments += ["--workers", f"{COUNTS[0]}..{COUNTS[-1]}"]
        for strategy in strategies:
            arguments += ["--strategy", strategy]
        return {(r["spec"], r["workers"]): r for r in self.json(*arguments)["results"]}


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def paper_fit(n):
    """The ring of the authors' script: a = 2 n alpha, with gamma."""
    alpha, beta, gamma = 45.25e-6, 9.6 / (9 * 2**30), 2.5e-9
    share = (n - 1) / n
    b = 2 * share * beta + share * gamma
    return f"fit:{n},a={2 * n * alpha!r}s,b={b * 1e9!r}ns"


def ring_fit(n, latency, rate):
    """A ring on one switch; tests hold that the simulated one takes exactly this."""
    return f"fit:{n},a={2 * (n - 1) * latency!r}s,b={2 * (n - 1) / n / rate * 1e9!r}ns"


def googlenet_section(riffle):
    if not GOOGLENET.exists():
        return "The published GoogLeNet trace is not on this machine; this part is left out.\n"
    specs = ["wfbp", "single", "mg-wfbp:merge=paper", "mg-wfbp"]
    results = riffle.sweep(GOOGLENET, [paper_fit(n) for n in COUNTS], specs)
    rows = []
    for n in COUNTS:
        cells = [
            f"{results[spec, n]['speedup']:.2f} ({results[spec, n]['bucket_count']})"
            for spec in specs
        ]
        rows.append([str(n), *cells])
    return table(["workers", *specs], rows)


def strategy_section(riffle, trace, name, algorithm):
    latency, rate = NETWORKS[name]
    flat = (
        f"flat:4,latency={latency * 1e6:g}us,bandwidth={rate * 8 / 1e9:g}Gbps,algorithm={algorithm}"
    )
    if algorithm == "ring":
        results = riffle.sweep(trace, [ring_fit(n, latency, rate) for n in COUNTS], WHOLE_WORLD)
        results |= riffle.sweep(trace, [flat], GROUPS)
    else:
        results = riffle.sweep(trace, [flat], WHOLE_WORLD + GROUPS)
    rows = []
    for spec in WHOLE_WORLD + GROUPS:
        rows.append([spec] + [f"{results[spec, n]['speedup']:.1f}" for n in SHOWN])
    return table(["strategy", *(f"{n}" for n in SHOWN)], rows)


def scaled_trace(riffle, model, dtype, compute, folder):
    trace = riffle.json("trace", "show", model)
    total = sum(layer["forward"] + layer["backward"] for layer in trace["layers"])
    for layer in trace["layers"]:
        for part in ("forward", "backward"):
            layer[part] *= compute / 1e3 / total
    trace["dtype"] = dtype
    trace["optimizer_step"] = 0
    path = pathlib.Path(folder) / f"{model}-{dtype}.json"
    path.write_text(json.dumps(trace))
    return path


def iteration_ms(riffle, trace, cluster, spec):
    arguments = ["--trace", str(trace), "--cluster", cluster, "--strategy", spec]
    return riffle.json("simulate", *arguments)["iteration_seconds"] * 1e3


def median(errors):
    return sorted(abs(e) for e in errors)[len(errors) // 2]


def tpds_section(riffle):
    rows, errors, small, large, missing = [], [], [], [], []
    specs = ["wfbp", "single", "mg-wfbp:merge=paper"]
    with tempfile.TemporaryDirectory() as folder:
        for model, cases in TPDS.items():
            for network, dtype, compute, *measured in cases:
                trace = scaled_trace(riffle, model, dtype, compute, folder)
                cells = []
                for spec, truth in zip(specs, measured, strict=True):
                    predicted = iteration_ms(riffle, trace, TPDS_FITS[network], spec)
                    errors.append(predicted / truth - 1)
                    if spec == "single":
                        missing.append((truth - compute) / (predicted - compute))
                    if network == "10GbE":
                        small.append(errors[-1])
                        slower = iteration_ms(riffle, trace, TPDS_LARGE_FIT, spec)
                        large.append(slower / truth - 1)
                    cells.append(f"{truth:.0f} / {predicted:.0f} / {errors[-1]:+.0%}")
                rows.append([model, f"{network} {dtype}", f"{compute:.0f}", *cells])
    text = table(["model", "network", "compute ms", "wfbp", "single", "mg-wfbp"], rows)
    spread = f"from {min(errors):+.0%} to {max(errors):+.0%}"
    return (
        text
        + f"\nMedian error {median(errors):.0%}, {spread}.\n"
        + TPDS_WHY.format(
            least=min(missing),
            most=max(missing),
            large=LARGE,
            before=median(small),
            after=median(large),
            low=min(large),
            high=max(large),
        )
    )


TPDS_WHY = """
Where the difference is: `single` overlaps nothing, so measured minus compute is its all-reduce with everything around it. That is
{least:.1f} to {most:.1f} times what the fit says: the published line does not give the authors' own all-reduce of a whole model. What is documented explains a part:

- The line was fitted to all-reduces of 32 KiB to 2 MiB with nothing else running; `single` sends 70 to 240 MB. For 8 workers on the same 10 GbE
  the authors have both lines, and a byte of a large message costs {large:.2f} times one of a small (1.49 against 0.857 ns). For 16 workers they give no such line.
  With that one factor on the 10GbE rows, none fitted to a row, the median error there goes from {before:.0%} to {after:.0%} ({low:+.0%} to {high:+.0%}).
- Copies into and out of merge buffers, hooks, and slower computing while the network is busy are not in the model; papers and code say that they
  exist, not how much they cost. They show most where messages are many (wfbp) and where numbers are short (f16: the line of 32-bit sums is all there is).
- Whether the published compute times contain reading the input is not said."""


PAGE = """# Scaling

Made by `python3 bench/scaling.py > docs/scaling.md`; every figure is a simulation of this repository's command.

## GoogLeNet on 10 GbE, as published

The trace of the MG-WFBP authors (K80, batch 64, forward taken as half of backward) on the ring of their script
(`a = 2 n 45.25 us`, `b` from 9 Gib/s with their factor 1.2 and 2.5 ns per reduced byte). Speed-up over one worker, messages a step in brackets.

{googlenet}
The published rule (merge=paper) falls behind the exact optimum from 32 workers on.

## Every strategy, 4 to 2048 workers

ResNet-50 as built in ({model}), one switch, speed-up over one worker. Whole-world rings are taken by their closed form,
which the simulated ring equals to 1e-9 (`tests/simulate/closed_form_test.cpp`). A tree is the double binary tree.
Strategies that mix weights do not make the same progress in a step as synchronous SGD; the table is about time alone.

{strategies}
## The measured 16 GPUs of TPDS 2021

Iteration time in ms, measured / predicted / error: four nodes of four V100. The traces are the built-in ones with all times scaled so that
computing takes what was measured; the networks are the authors' fits for 16 workers (10GbE a = 0.908 ms, b = 0.74 ns; 56GbIB a = 0.236 ms, b = 0.406 ns).

{tpds}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--riffle", default="build/release/bin/riffle")
    riffle = Riffle(parser.parse_args().riffle)
    model = riffle.json("trace", "show", "resnet50")
    parts = []
    for name, (latency, rate) in NETWORKS.items():
        for algorithm in ("ring", "tree"):
            parts.append(
                f"### {name}, {algorithm} ({latency * 1e6:g} us, {rate * 8 / 1e9:g} Gb/s)\n\n"
                + strategy_section(riffle, "resnet50", name, algorithm)
            )
    print(
        PAGE.format(
            googlenet=googlenet_section(riffle),
            model=model.get("source", "built in"),
            strategies="\n".join(parts),
            tpds=tpds_section(riffle),
        ),
        end="",
    )


if __name__ == "__main__":
    main()
