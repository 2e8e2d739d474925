"""riffle._core without torch: schedules as data, their readers, strategies written in Python."""

import ctypes
import json
import subprocess
import sys
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

import riffle
from riffle import _core

FLAT = "flat:{},latency=50us,bandwidth=10Gbps"


class Pairs(riffle.Strategy):
    """neighbours average their weights, even and odd pairs in turn"""

    name = "pairs"
    options = [riffle.schedule.Option("every", "1", "steps that pairs stay the same")]

    def __init__(self, options):
        self.every = options.integer("every", 1)

    def program(self, step, world, buckets):
        ranks = world.ranks
        if step // self.every % 2:
            ranks = ranks[1:] + ranks[:1]
        program = riffle.schedule.Program()
        for bucket in buckets:
            for i in range(0, len(ranks), 2):
                program.add(
                    riffle.schedule.Exchange(
                        bucket.id,
                        sorted(ranks[i : i + 2]),
                        payload="weight",
                        start="bucket_stepped",
                        due=riffle.schedule.before_forward(),
                    )
                )
        return program

    def traits(self, world):
        return riffle.schedule.Traits(period=2 * self.every, mixed="weight")


class Wrong(riffle.Strategy):
    """says it is exact, and never exchanges anything"""

    name = "wrong"
    exact = True

    def program(self, step, world, buckets):
        return riffle.schedule.Program()


riffle.register(Pairs)
riffle.register(Wrong)


def session(engine, spec, **options):
    """One of four numbers, which it may leave where they are."""
    memory = (ctypes.c_double * 4)()
    chosen = _core.ChosenStrategy(riffle.make(spec))
    parameters = [("x", len(memory), "f64", ctypes.addressof(memory))]
    made = _core.Session(engine, chosen, parameters, measure_network=False, **options)
    return made, memory


class Core(unittest.TestCase):
    def test_does_not_import_torch(self):
        code = "import riffle, sys; sys.exit('torch' in sys.modules)"
        subprocess.run([sys.executable, "-c", code], check=True)

    def test_programs_are_data(self):
        world = riffle.World(FLAT.format(4))
        buckets = riffle.schedule.one_bucket(riffle.load_trace("resnet50"))
        program = riffle.make("sesgd:group=2").program(0, world, buckets)
        self.assertEqual([e.group for e in program.exchanges], [[0, 1], [2, 3]])
        self.assertEqual(program.exchanges[0].payload, "weight")
        self.assertEqual(riffle.schedule.Program.from_json(program.to_json()), program)

    def test_errors_are_python_errors(self):
        with self.assertRaisesRegex(riffle.UsageError, "unknown strategy 'nope'.*mg-wfbp"):
            riffle.make("nope")
        with self.assertRaisesRegex(ValueError, "payload 'wait' is not known; known: gradient"):
            riffle.schedule.Exchange(0, [0, 1], payload="wait")
        with self.assertRaises(riffle.UsageError):
            riffle.Cluster("flat:3,latency=1")

    def test_readers_agree_with_the_command(self):
        self.assertTrue(riffle.verify("sesgd", 16).ok)
        self.assertEqual(riffle.verify("sesgd", 16).steps_to_consensus, 2)
        found = riffle.simulate("resnet50", FLAT.format(16), "mg-wfbp")
        self.assertEqual(json.loads(found.to_json())["iteration_seconds"], found.iteration_seconds)
        best = riffle.plan("resnet50", FLAT.format(16), ["bsp", "mg-wfbp"]).candidates[0]
        self.assertLessEqual(best.simulation.iteration_seconds, found.iteration_seconds)

    def test_a_strategy_in_python_is_verified(self):
        self.assertTrue(riffle.verify("pairs", 8).ok)
        self.assertEqual(riffle.verify("pairs:every=3", 8).period, 6)
        self.assertAlmostEqual(riffle.verify("pairs", 8).mixing_rate, 0.5**0.5)

    def test_a_wrong_strategy_in_python_is_refuted(self):
        found = riffle.verify("wrong", 4)
        self.assertFalse(found.ok)
        self.assertTrue(found.problems)

    def test_a_strategy_in_python_is_simulated_and_planned(self):
        pairs = riffle.simulate("vgg16", FLAT.format(8), "pairs")
        alone = riffle.load_trace("vgg16").compute
        self.assertGreater(pairs.iteration_seconds, alone)
        plan = riffle.plan("vgg16", FLAT.format(8), ["pairs", "bsp"])
        self.assertEqual({c.spec for c in plan.candidates}, {"pairs", "bsp"})
        self.assertIn("pairs", [info.name for info in riffle.strategies()])

    def test_ranks_that_are_threads_save_what_is_under_way(self):
        engines = riffle.loopback_engines(2)

        def save(rank):
            made, _ = session(engines[rank], "dasgd:tau=2,delay=1", timeout=10)
            made.end_step()
            time.sleep(0.3 * rank)  # the other waits for this one, and must let it run
            made.end_step()
            return len(made.save())

        with ThreadPoolExecutor(2) as threads:
            for size in threads.map(save, range(2)):
                self.assertGreater(size, 0)

    def test_options_of_a_session_are_checked(self):
        engine = riffle.loopback_engines(1)[0]
        for option in ({"timeout": 0}, {"timeout": float("nan")}, {"sense_window": 0}):
            with (
                self.subTest(option),
                self.assertRaisesRegex(riffle.UsageError, next(iter(option))),
            ):
                session(engine, "wfbp", **option)

    def test_names_are_taken_once(self):
        with self.assertRaisesRegex(riffle.UsageError, "pairs"):
            riffle.register(Pairs)

    def test_an_exception_in_python_comes_through(self):
        class Broken(riffle.Strategy):
            """raises"""

            name = "broken"

            def program(self, step, world, buckets):
                raise KeyError("my own mistake")

        riffle.register(Broken)
        with self.assertRaisesRegex(KeyError, "my own mistake"):
            riffle.verify("broken", 4)


if __name__ == "__main__":
    unittest.main()
