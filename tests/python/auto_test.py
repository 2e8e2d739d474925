"""Traces that scripts record, and `auto`, which plans on them: on every engine."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import profile_worker
import reference
import torch
from processes import run, run_with_gloo
from tasks import batch, distance, flat, loss_of, momentum, perceptron

import riffle
from riffle import emulated

RIFFLE = os.environ.get("RIFFLE_COMMAND", "riffle")
WORKERS = 3
STEPS = 20
BOUND = 1e-10
# Slow enough that it matters how gradients travel.
CLUSTER = f"flat:{WORKERS},latency=100us,bandwidth=2Mbps"


def recorded(engine, strategy, *launcher):
    """The trace that `riffle profile` writes of a script."""
    script = Path(__file__).with_name("profile_worker.py")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        command = [RIFFLE, "profile", "--steps=8", "--output", path, "--", *launcher]
        command += [sys.executable, "-W", "ignore", script, engine, strategy]
        done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
        if done.returncode:
            raise AssertionError(done.stdout + done.stderr)
        return riffle.load_trace(str(path))


def train(engine, first, last, model, optimizer):
    for step in range(first, last):
        optimizer.zero_grad()
        loss_of(model, batch(engine.rank, step)).backward()
        optimizer.step()


def automatic(engine, spec, over, **options):
    """Weights, what ran, its plan, and lines about it."""
    model = perceptron()
    optimizer = momentum(model.parameters())
    by = riffle.c10d() if over == "gloo" else engine
    with riffle.sync(model, optimizer, spec, engine=by, **options) as session:
        train(engine, 0, STEPS, model, optimizer)
        weights = flat(model)
        strategy = session.strategy.spec
        lines = session.sensed
        planned = session.plan
    return weights, strategy, None if planned is None else planned.to_json(), lines


def slow(engine, spec, over):
    """The same with layers that take their time, so that something can hide under them."""
    layers = [riffle.Layer(f"l{i}", 1000, 0.004, 0.008) for i in range(4)]
    model = emulated.Model(riffle.Trace(layers, "slow"))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    by = riffle.c10d() if over == "gloo" else engine
    with riffle.sync(model, optimizer, spec, engine=by, cluster=CLUSTER) as session:
        for _ in range(12):
            optimizer.zero_grad()
            model().backward()
            optimizer.step()
        ran, plan = session.strategy.spec, session.plan
    return ran, [(c.spec, c.exact, c.measured_seconds) for c in plan.candidates], flat(model)


def resumed(engine, over):
    """Weights of a run, and of another that goes on from its middle."""
    by = riffle.c10d() if over == "gloo" else engine
    model = perceptron()
    optimizer = momentum(model.parameters())
    with riffle.sync(model, optimizer, "auto", engine=by) as session:
        train(engine, 0, 10, model, optimizer)
        state = session.state_dict()
        saved = {key: value.clone() for key, value in model.state_dict().items()}
        moments = [s["momentum_buffer"].clone() for s in optimizer.state.values()]
        ran = session.strategy.spec
        train(engine, 10, STEPS, model, optimizer)
        whole = flat(model)
    again = perceptron()
    again.load_state_dict(saved)
    optimizer = momentum(again.parameters())
    for p, moment in zip(again.parameters(), moments, strict=True):
        optimizer.state[p]["momentum_buffer"] = moment
    with riffle.sync(again, optimizer, "auto", engine=by, resume=state) as session:
        same = session.strategy.spec == ran and session.plan is not None
        train(engine, 10, STEPS, again, optimizer)
        same &= session.sensed == []
        return same, torch.equal(flat(again), whole)


class Profile(unittest.TestCase):
    def check(self, trace):
        """Sleeps last a little longer than asked for; a wrong layer or unit is far off."""
        for i, layer in enumerate(trace.layers):
            for found, wanted in (
                (layer.forward, profile_worker.FORWARD[i]),
                (layer.backward, profile_worker.BACKWARD[i]),
            ):
                self.assertGreater(1e3 * found, wanted - 0.5, f"layer {i}")
                self.assertLess(1e3 * found, wanted + 3, f"layer {i}")
        self.assertEqual([layer.elements for layer in trace.layers], [1000, 2000, 3000, 4000])
        self.assertTrue(trace.model == "Model" and "measured" in str(trace), str(trace))

    def test_a_worker_alone(self):
        self.check(recorded("riffle", "auto"))

    def test_every_engine_and_updates_under_backward(self):
        launch = (RIFFLE, "launch", "-n", "2", "--")
        for engine, strategy in (
            ("riffle", "sesgd:bucket=layer"),
            ("riffle", "local-sgd"),
            ("gloo", "mg-wfbp"),
        ):
            with self.subTest(engine=engine, strategy=strategy):
                self.check(recorded(engine, strategy, *launch))


class Auto(unittest.TestCase):
    def test_plans_alike_and_stays_exact(self):
        replicas = reference.Replicas(WORKERS, perceptron, momentum)
        reference.synchronous(replicas, STEPS)
        expected = replicas.weights()[0]
        for over, runner in (("riffle", run), ("gloo", run_with_gloo)):
            with self.subTest(over=over):
                answers = runner(WORKERS, automatic, "auto", over)
                for weights, ran, plan, lines in answers:
                    self.assertEqual(ran, answers[0][1])
                    self.assertLess(distance(weights, expected), BOUND)
                    candidates = json.loads(plan)["candidates"]
                    self.assertTrue(all(each["exact"] for each in candidates))
                    self.assertIn(ran, [each["spec"] for each in candidates])
                    self.assertEqual(len(lines), 1, lines)
                    self.assertIn("auto", lines[0][1])

    def test_changes_where_another_is_faster(self):
        for over, runner in (("riffle", run), ("gloo", run_with_gloo)):
            with self.subTest(over=over):
                for spec, exact in (("auto", True), ("auto:inexact=true", False)):
                    answers = runner(WORKERS, slow, spec, over)
                    ran, candidates, weights = answers[0]
                    self.assertNotEqual(ran, "mg-wfbp")
                    found = {name: (is_exact, took) for name, is_exact, took in candidates}
                    self.assertEqual(found[ran][0], exact)
                    # Prediction beside measurement, of what ran now and before.
                    self.assertGreater(found[ran][1], 4 * 0.012)
                    self.assertGreater(found["mg-wfbp"][1], 4 * 0.012)
                    # A constant gradient: all workers are where every rule brings them.
                    for _, _, other in answers:
                        self.assertLess(distance(other, weights), 1e-6)
                    self.assertLess(abs(float(weights[0]) + 0.12), 1e-5)

    def test_resumes_bit_for_bit(self):
        for over, runner in (("riffle", run), ("gloo", run_with_gloo)):
            self.assertEqual(runner(WORKERS, resumed, over), [(True, True)] * WORKERS, over)

    def test_takes_a_plan_instead(self):
        trace = riffle.Trace([riffle.Layer("l", 1000, 0.001, 0.001)], "any")
        plan = json.loads(riffle.plan(trace, CLUSTER, ["wfbp", "sesgd", "bsp"]).to_json())
        plan["candidates"].sort(key=lambda each: each["spec"], reverse=True)  # wfbp, sesgd, bsp
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write(json.dumps(plan))
            file.flush()
            for over, runner in (("riffle", run), ("gloo", run_with_gloo)):
                for _, ran, _, _ in runner(
                    WORKERS, lambda *given: automatic(*given, plan=file.name), "auto", over
                ):
                    self.assertEqual(ran, "wfbp")
            del plan["candidates"][0]
            file.seek(0)
            file.truncate()
            file.write(json.dumps(plan))
            file.flush()
            for spec, wanted in (("auto", "bsp"), ("auto:inexact=true", "sesgd")):
                for _, ran, _, _ in run(
                    WORKERS, lambda *given: automatic(*given, plan=file.name), spec, "riffle"
                ):
                    self.assertEqual(ran, wanted)
        with self.assertRaises(riffle.UsageError):
            riffle.sync(perceptron(), momentum(perceptron().parameters()), plan="nowhere.json")


if __name__ == "__main__":
    unittest.main()
