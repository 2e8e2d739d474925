#!/usr/bin/env python3
"""How true the lab is, judged by others' tools: ping (iputils) and iperf3, against the spec.

    bench/lab_accuracy.py [--only pairs] [--seconds 4] [--format json]

Each row is a lab of its own: `riffle lab SPEC --dilate K -- ...`, where K is 1, or what the lab
itself names as the dilation that would work. Times and rates are given as of the true cluster, with
the bar that each must hold.

    pairs       ping and iperf3 from host to host
    shared      four flows of iperf3 over one uplink: with windows that it has room for; and with
                larger ones for a minute, since reno shares evenly only on average
    loss        UDP over a link that loses 1 %
    all-to-all  raw sockets against the flow model (riffle lab --check)
    limits      where this machine ends, undilated: small all-reduces against the cost model, and
                all hosts sending to their neighbours; src/lab/limits.cpp has what was found
Needs the Debian packages iputils-ping and iperf3, and what the lab needs.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RIFFLE = os.environ.get("RIFFLE_COMMAND", str(ROOT / "build/release/bin/riffle"))

# What every host runs: clients measure and write a file, servers answer one client.
SCRIPT = """
case " $CLIENTS " in
*" $RANK "*)
  server=$((RANK + OFFSET))
  address=198.18.0.$((server + 1))
  sleep 0.5
  if [ "$RANK" = 0 ]; then ping -q -c "$PINGS" -i 0.02 "$address" > "$FOLDER/ping"; fi
  iperf3 -c "$address" -t "$SECONDS_OF_TEST" -J ${IPERF:--O 1} > "$FOLDER/iperf.$RANK"
  ;;
*" "*)
  case " $SERVERS " in *" $RANK "*) exec timeout 100 iperf3 -s -1 > /dev/null ;; esac
  ;;
esac
"""


def latencies():
    for latency, bandwidth in [
        ("0.1ms", "1Gbps"),
        ("0.5ms", "100Mbps"),
        ("1ms", "10Mbps"),
        ("1ms", "1Gbps"),
        ("5ms", "100Mbps"),
        ("20ms", "10Mbps"),
        ("20ms", "1Gbps"),
    ]:
        yield f"flat:2,latency={latency},bandwidth={bandwidth}", 1, seconds(latency)
    yield "racks:2x2,inner=1ms/200Mbps,outer=4ms/100Mbps", 2, 5e-3
    yield "racks:2x2,inner=0.1ms/1Gbps,outer=0.4ms/500Mbps", 2, 0.5e-3


def seconds(text):
    return float(text.removesuffix("ms")) * 1e-3


def rate(text):
    number, unit = re.fullmatch(r"([\d.]+)([MG])bps", text).groups()
    return float(number) * {"M": 1e6, "G": 1e9}[unit]


def dilation_for(spec):
    """1, or what the lab's refusal names."""
    tried = subprocess.run([RIFFLE, "lab", spec, "--", "true"], capture_output=True, text=True)
    named = re.search(r"--dilate (\S+) would work", tried.stderr)
    if tried.returncode and not named:
        sys.exit(tried.stderr)
    return named.group(1) if named else "1"


def in_lab(spec, dilate, clients, servers, offset, seconds, iperf="", events=()):
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {
            "CLIENTS": " ".join(map(str, clients)),
            "SERVERS": " ".join(map(str, servers)),
            "OFFSET": str(offset),
            "FOLDER": folder,
            "PINGS": "25",
            "SECONDS_OF_TEST": str(seconds),
            "IPERF": iperf,
        }
        changes = [word for event in events for word in ("--events", event)]
        command = [RIFFLE, "lab", spec, "--dilate", dilate, *changes, "--", "sh", "-c", SCRIPT]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{spec}: {done.stderr}{done.stdout}")
        ping = re.search(r"= [\d.]+/([\d.]+)/", (Path(folder) / "ping").read_text())
        flows = [json.loads((Path(folder) / f"iperf.{c}").read_text())["end"] for c in clients]
        return float(ping.group(1)) * 1e-3, flows, "processors set the pace" in done.stderr


def row(what, spec, dilate, expected, measured, busy, bar, *, or_seconds=0.0):
    """bar: the share by which measured may differ; or_seconds: or by so much."""
    difference = abs(measured - expected)
    return {
        "what": what,
        "bar": bar,
        "holds": difference <= max(bar * expected, or_seconds),
        "spec": spec,
        "dilate": float(dilate),
        "expected": expected,
        "measured": measured,
        "difference": measured / expected - 1,
        "processors_limited": busy,
    }


def pairs(arguments):
    for spec, offset, one_way in latencies():
        dilate = dilation_for(spec)
        hosts = 2 * offset
        ping, flows, busy = in_lab(spec, dilate, [0], [offset], offset, arguments.seconds)
        stretch = float(dilate)
        yield row(f"ping, {hosts} hosts", spec, dilate, 2 * one_way, ping / stretch, busy,
                  0.05, or_seconds=50e-6)  # fmt: skip
        got = flows[0]["sum_received"]["bits_per_second"] * stretch
        narrow = rate(re.findall(r"[\d.]+[MG]bps", spec)[-1])
        yield row("iperf3, bit/s", spec, dilate, narrow, got, busy, 0.05)


def shared(arguments):
    """Windows that the queue has room for, then whatever TCP likes: reno until the queue drops."""
    spec = "racks:2x4,inner=1ms/100Mbps,outer=2ms/80Mbps"
    for what, seconds, options in (
        ("one of four flows, bit/s", arguments.seconds, "-O 1 -w 20K"),
        ("the same, reno for 60 s", 60, "-O 3 -w 128K"),
    ):
        _, flows, busy = in_lab(spec, "1", range(4), range(4, 8), 4, seconds, options)
        for flow in flows:
            got = flow["sum_received"]["bits_per_second"]
            yield row(what, spec, "1", 20e6, got, busy, 0.1)


def loss(arguments):
    spec = "flat:2,latency=1ms,bandwidth=100Mbps"
    events = ["at=0s,link=worker0,loss=1%"]
    options = "-u -b 50M -l 1400"
    _, flows, busy = in_lab(spec, "1", [0], [1], 1, arguments.seconds, options, events)
    total = flows[0]["sum"]
    yield row(f"loss over {total['packets']} packets", spec, "1", 0.01,
              total["lost_percent"] / 100, busy, 0.2)  # fmt: skip


def all_to_all(_arguments):
    for spec in [
        "flat:4,latency=2ms,bandwidth=100Mbps",
        "flat:8,latency=2ms,bandwidth=50Mbps",
        "racks:2x4,inner=1ms/100Mbps,outer=2ms/80Mbps",
    ]:
        done = subprocess.run(
            [RIFFLE, "lab", spec, "--check", "--format", "json"],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        found = json.loads(done.stdout)
        busy = found["pace"]["processors_limited"]
        for each in found["results"]:
            if each["what"] == "all-to-all":
                expected, measured = each["expected"], each["measured"]
                yield row("all-to-all, s", spec, "1", expected, measured, busy, 0.08)


def small_all_reduces():
    for hosts in (4, 8, 16):
        for latency in ("0.5ms", "1ms", "2.5ms"):
            command = [sys.executable, str(ROOT / "bench/network_allreduce.py"), "--against", ""]
            command += ["--hosts", str(hosts), "--sizes", "4KiB", "--calls", "100"]
            command += ["--latency", latency, "--bandwidth", "100Mbps", "--format", "json"]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            found = json.loads(done.stdout)["results"][0]
            spec = f"flat:{hosts},latency={latency},bandwidth=100Mbps"
            expected, measured = found["predicted_seconds"], found["p50_seconds"]
            yield row("4 KiB all-reduce, s", spec, "1", expected, measured, False, 0.15)


NEIGHBOURS = """
next=$(((RANK + 1) % WORLD_SIZE + 1))
timeout 100 iperf3 -s -1 > /dev/null & sleep 1
iperf3 -c 198.18.0.$next -t "$SECONDS_OF_TEST" -O 1 -J > "$FOLDER/iperf.$RANK"; wait
"""


def all_send(spec, hosts, seconds):
    """Every host sends to the next, so that all links are full both ways: bit/s of each, pace."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"FOLDER": folder, "SECONDS_OF_TEST": str(seconds)}
        command = [RIFFLE, "lab", spec, "--force", "--stats", "--format", "json", "--"]
        command += ["sh", "-c", NEIGHBOURS]
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        pace = json.loads(done.stdout[done.stdout.index("{") :])["pace"]
        files = [Path(folder) / f"iperf.{rank}" for rank in range(hosts)]
        ends = [json.loads(file.read_text())["end"] for file in files]
        return [end["sum_received"]["bits_per_second"] for end in ends], pace


def neighbours(arguments):
    for hosts, latency, bandwidths in (
        (4, "2ms", ("1Gbps", "2Gbps", "4Gbps")),
        (8, "2ms", ("200Mbps", "500Mbps", "1Gbps")),
        (8, "1ms", ("100Mbps", "200Mbps", "500Mbps")),
        (16, "2ms", ("50Mbps", "100Mbps", "200Mbps")),
    ):
        for bandwidth in bandwidths:
            spec = f"flat:{hosts},latency={latency},bandwidth={bandwidth}"
            got, pace = all_send(spec, hosts, arguments.seconds)
            what = f"neighbours, {100 * pace['late_share']:.1f} % late"
            mean, busy = sum(got) / hosts, pace["processors_limited"]
            yield row(what, spec, "1", rate(bandwidth), mean, busy, 0.05)


def limits(arguments):
    yield from small_all_reduces()
    yield from neighbours(arguments)


PARTS = {
    "pairs": pairs,
    "shared": shared,
    "loss": loss,
    "all-to-all": all_to_all,
    "limits": limits,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--format", choices=["table", "json"], default="table")
    arguments = parser.parse_args()
    results = []
    for name, part in PARTS.items():
        if arguments.only not in (None, name):
            continue
        for each in part(arguments):
            results.append(each)
            if arguments.format == "table":
                note = "" if each["holds"] else "  missed"
                note += "  (processors busy)" if each["processors_limited"] else ""
                print(
                    f"{each['what']:32} {each['spec']:52} x{each['dilate']:<4g}"
                    f" {each['expected']:12.6g} {each['measured']:12.6g}"
                    f" {100 * each['difference']:+7.2f} %{note}",
                    flush=True,
                )
    if arguments.format == "json":
        print(json.dumps({"results": results}, indent=1))


if __name__ == "__main__":
    main()
