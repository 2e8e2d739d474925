"""Every strategy trains between the hosts of a lab as it does on one host."""

import json
import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

import torch

import riffle
from riffle import emulated

RIFFLE = os.environ.get("RIFFLE_COMMAND", "riffle")
WORKER = Path(__file__).with_name("lab_worker.py")
CLUSTER = "racks:2x2,inner=1ms/200Mbps,outer=2ms/100Mbps"
HOSTS = 4


def strategies():
    listed = subprocess.run(
        [RIFFLE, "strategies", "--format", "json"], check=True, capture_output=True, text=True
    )
    for each in json.loads(listed.stdout)["strategies"]:
        # What depends on clocks differs from run to run, and a delay must not depend on measured
        # times.
        if riffle.make(each["name"]).traits(riffle.World(CLUSTER)).timed:
            continue
        yield "ds-sync:pattern=bottleneck,delay=1" if each["name"] == "ds-sync" else each["name"]
    yield "ssp:staleness=0"


def train(launcher, names):
    with tempfile.TemporaryDirectory() as folder:
        command = [*launcher, "--", sys.executable, WORKER, folder, CLUSTER, *names]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode:
            raise AssertionError(done.stdout + done.stderr)
        return [torch.load(Path(folder) / f"{rank}.pt") for rank in range(HOSTS)]


class Emulated(unittest.TestCase):
    """Times are bounded from below only: a busy machine adds to them."""

    ENVIRONMENT = {
        "RIFFLE_LAB_DILATE": "2",
        "RIFFLE_LAB_SHRINK": "10",
        "RIFFLE_LAB_START": str(time.monotonic_ns()),
        "RIFFLE_LAB_EVENTS": "at=0s,worker=1,slow=3 at=1ms,link=rack0,cut at=99s,worker=1,slow=9",
        "RIFFLE_LAB_CLUSTER": json.dumps({"workers": [{}, {"slow": 2.0}]}),
        "GROUP_RANK": "1",
    }

    def test_a_device_is_as_slow_as_its_host(self):
        device = emulated.Device(self.ENVIRONMENT)
        device.begin_step(0)
        self.assertEqual(device.factor, 3.0)
        begin = time.monotonic()
        device.take(0.01)
        self.assertGreaterEqual(time.monotonic() - begin, 0.01 * 3 * 2)
        self.assertEqual(emulated.Device(self.ENVIRONMENT | {"GROUP_RANK": "0"}).slow, 1.0)

    def test_the_last_event_counts_wherever_it_is_written(self):
        events = "at=2ms,worker=1,slow=5 at=1ms,worker=1,slow=3"
        device = emulated.Device(self.ENVIRONMENT | {"RIFFLE_LAB_EVENTS": events})
        time.sleep(0.01)
        device.begin_step(0)
        self.assertEqual(device.factor, 5.0)

    def test_a_model_becomes_ready_layer_by_layer(self):
        layers = [riffle.Layer(f"layer{i}", 100 * (i + 1), 0.002, 0.004) for i in range(3)]
        trace = riffle.Trace(layers, "toy")
        model = emulated.Model(trace, emulated.Device(self.ENVIRONMENT))
        self.assertEqual([p.numel() for p in model.parameters()], [10, 20, 30])
        ready = []
        for name, parameter in model.named_parameters():
            parameter.register_post_accumulate_grad_hook(
                lambda _, name=name: ready.append((name, time.monotonic()))
            )
        begin = time.monotonic()
        loss = model()
        middle = time.monotonic()
        loss.backward()
        self.assertGreaterEqual(middle - begin, 3 * 0.002 * 6 * 0.99)
        self.assertEqual([name for name, _ in ready], [f"layer{i}.weight" for i in (2, 1, 0)])
        for i, (_, at) in enumerate(ready):
            self.assertGreaterEqual(at - middle, (i + 1) * 0.004 * 6 * 0.99)

    def test_buckets_under_shrink_are_those_of_the_true_model(self):
        world = riffle.World("flat:4,latency=1ms,bandwidth=1Gbps")
        trace = riffle.load_trace("resnet50")
        model = emulated.Model(trace, emulated.Device(self.ENVIRONMENT))
        layers = zip(trace.layers, model.parameters(), strict=True)
        small = [riffle.Layer(old.name, p.numel(), old.forward, old.backward) for old, p in layers]
        narrow = riffle.World("flat:4,latency=1ms,bandwidth=100Mbps")
        for spec in ("ddp", "dear", "mg-wfbp", "sesgd:bucket=4MiB"):
            expected = riffle.make(spec).buckets(trace, world)
            found = model.strategy(spec).buckets(riffle.Trace(small, "small"), narrow)
            self.assertEqual(
                [(b.first, b.last) for b in found], [(b.first, b.last) for b in expected], spec
            )


class Lab(unittest.TestCase):
    def setUp(self):
        tried = subprocess.run(
            [RIFFLE, "lab", CLUSTER, "--", "true"], capture_output=True, text=True, check=False
        )
        if "no lab here" in tried.stderr:
            self.skipTest(tried.stderr)

    def test_every_strategy_gives_the_weights_of_one_host(self):
        names = list(strategies())
        far = train([RIFFLE, "lab", CLUSTER], names)
        near = train([RIFFLE, "launch", "-n", str(HOSTS)], names)
        for rank in range(HOSTS):
            for name in names:
                expected, found = near[rank][name], far[rank][name]
                distance = (found - expected).norm() / expected.norm()
                self.assertLess(distance, 1e-10, f"{name} on rank {rank}")


if __name__ == "__main__":
    unittest.main()
