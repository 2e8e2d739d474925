"""What a session over a process group of torch.distributed has besides the rules (engines_test.py):
checkpoints, element types, groups, figures that are true, waits that end."""

import copy
import json
import struct
import tempfile
import time
import unittest

import torch
import torch.distributed as dist
from processes import gather, run_with_gloo, start, with_gloo
from tasks import Mixed, batch, distance, loss_of, momentum, perceptron, state

import riffle
from riffle import _process_group

WORKERS = 4
STOP, STEPS = 6, 13
FLAT = "flat:4,latency=20us,bandwidth=10Gbps"
RACKS = "racks:2x2,inner=20us/10Gbps,outer=200us/1Gbps"
F64, F32, BF16 = torch.float64, torch.float32, torch.bfloat16

# After STOP steps: what the checkpoint must have in flight.
RESUMED = [
    ("ds-sync:pattern=bottleneck,delay=2,bucket=single", RACKS, True),
    ("dasgd:tau=4,delay=3", FLAT, True),
    ("dasgd:tau=4,delay=3,merge=mix,mix_state=true", FLAT, True),
    ("diloco:tau=5,mix_state=true", FLAT, False),  # an outer momentum
    ("diloco:tau=6,overlap=4", FLAT, True),
    ("diloco:tau=8,fragments=3,overlap=2,mix_state=true", FLAT, True),
    ("slowmo:tau=5", FLAT, False),
    ("noloco:tau=5,mix_state=true", FLAT, False),
    ("sesgd:bucket=single,order=combine-then-adapt", FLAT, True),
    ("sesgd:bucket=single,schedule=random,group=2,mix_state=true", FLAT, True),
    ("gossip:mix_state=true", FLAT, True),
    ("gossip:order=combine-then-adapt", FLAT, True),
    ("dear", FLAT, False),
]
PAIRS = "sesgd:bucket=layer,group=2"


@riffle.register
class Halves(riffle.Strategy):
    """dear in pairs that change, so that there are several groups to scatter and gather in"""

    name = "halves"

    def program(self, step, world, buckets):
        ranks = world.ranks[step % 2 :] + world.ranks[: step % 2]
        program = riffle.schedule.Program()
        for collective, at, due in (
            ("reduce_scatter", "bucket_ready", riffle.schedule.before_step()),
            ("all_gather", "step_done", riffle.schedule.before_forward()),
        ):
            for bucket in buckets:
                for i in range(0, len(ranks), 2):
                    pair = sorted(ranks[i : i + 2])
                    program.add(
                        riffle.schedule.Exchange(
                            bucket.id, pair, collective=collective, start=at, due=due
                        )
                    )
        return program

    def traits(self, world):
        return riffle.schedule.Traits(period=2)


@riffle.register
class RowsThenColumns(riffle.Strategy):
    """the mean of four workers' gradients in two exchanges that are in flight together"""

    name = "rows-then-columns"

    def program(self, step, world, buckets):
        program = riffle.schedule.Program()
        for bucket in buckets:
            for lane, (start_at, groups) in enumerate(
                (("bucket_ready", ([0, 1], [2, 3])), ("backward_done", ([0, 2], [1, 3])))
            ):
                for group in groups:
                    program.add(
                        riffle.schedule.Exchange(bucket.id, group, lane=lane, start=start_at)
                    )
        return program


@riffle.register
class EndFirst(riffle.Strategy):
    """its programs begin with what starts last; lanes of our own engine do not mind"""

    name = "end-first"

    def program(self, step, world, buckets):
        program = riffle.schedule.Program()
        at_the_end = {"payload": "weight", "start": "step_done", "lane": 1}
        due = riffle.schedule.before_forward()
        for options in ({**at_the_end, "due": due}, {"due": riffle.schedule.before_step()}):
            for bucket in buckets:
                program.add(riffle.schedule.Exchange(bucket.id, world.ranks, **options))
        return program


def steps(model, optimizer, rank, first, last):
    for step in range(first, last):
        optimizer.zero_grad()
        loss_of(model, batch(rank, step)).backward()
        optimizer.step()


# --- Checkpoints.


def flights_in(saved):
    """How many a session's state has: its header is JSON behind its length."""
    (size,) = struct.unpack_from("<Q", saved)
    return len(json.loads(saved[8 : 8 + size])["flights"])


def resumed(engine, spec, cluster):
    """A run in one go, and one that went on from a checkpoint; and what it had in flight."""

    def fresh(saved=None):
        model = Mixed((F64, F32, BF16))
        optimizer = momentum(model.parameters())
        if saved is not None:
            model.load_state_dict(saved["model"])
            optimizer.load_state_dict(saved["optimizer"])
        session = riffle.sync(
            model,
            optimizer,
            spec,
            engine=engine,
            cluster=cluster,
            resume=saved and saved["session"],
        )
        return model, optimizer, session

    model, optimizer, session = fresh()
    steps(model, optimizer, engine.rank, 0, STOP)
    saved = {"session": session.state_dict(), "model": model.state_dict()}
    saved = copy.deepcopy(saved | {"optimizer": optimizer.state_dict()})
    steps(model, optimizer, engine.rank, STOP, STEPS)
    whole = state(model)
    session.close()

    model, optimizer, session = fresh(saved)
    steps(model, optimizer, engine.rank, STOP, STEPS)
    halves = state(model)
    session.close()
    return whole, halves, flights_in(saved["session"]["session"])


# --- Types and groups.


def trained(engine, spec, make_model, cluster=FLAT, **options):
    model = make_model()
    optimizer = momentum(model.parameters())
    session = riffle.sync(model, optimizer, spec, engine=engine, cluster=cluster, **options)
    steps(model, optimizer, engine.rank, 0, STEPS)
    found, stats, timeline = state(model), session.stats(), session.core.timeline()
    session.close()
    return found, stats, timeline


def mixed_types():
    return Mixed((F64, F32, F64))


def without_groups(engine, spec, cluster):
    """Trains with groups of its own and point to point; how many groups each made."""
    made = []
    whole = dist.new_group

    def counted(*arguments, **named):
        made.append(1)
        return whole(*arguments, **named)

    dist.new_group = counted
    most = _process_group.MOST_GROUPS
    try:
        with_groups, *_ = trained(engine, spec, perceptron, cluster)
        first = len(made)
        trained(engine, spec, perceptron, cluster)  # they are reused
        again = len(made) - first
        _process_group.MOST_GROUPS = 1
        found, stats, _ = trained(engine, spec, perceptron, cluster)
    finally:
        _process_group.MOST_GROUPS = most
        dist.new_group = whole
    return with_groups, found, (first, again, len(made) - first - again), stats.bytes


# --- What is told of a run.


def aligned(sizes):
    """Every tensor starts on 64 bytes."""
    return [(size + 63) // 64 * 64 for size in sizes]


def told(engine, spec):
    _, stats, timeline = trained(engine, spec, perceptron, record=True)
    events = [e["args"] for e in json.loads(timeline)["traceEvents"] if e["ph"] == "X"]
    return stats.steps, stats.bytes, events


def slow(engine):
    """All but rank 1 wait for it; the seconds it was late, and all there were."""
    late = 0.2
    model = perceptron()
    optimizer = momentum(model.parameters())
    session = riffle.sync(model, optimizer, "bsp", engine=engine, cluster=FLAT)
    began = time.monotonic()
    for step in range(4):
        optimizer.zero_grad()
        if engine.rank == 1:
            time.sleep(late)
        loss_of(model, batch(engine.rank, step)).backward()
        optimizer.step()
    stats = session.stats()
    seconds = (time.monotonic() - began) / 4
    session.close()
    return late, stats.exposed_communication, seconds


# Options that cannot be had over a process group, and what is said of each.
REFUSED = [
    ("wfbp", {"sense": True}, "sense: over a process group the network cannot be sensed"),
    ("wfbp", {"sense_window": 5}, "sense: over a process group the network cannot be sensed"),
    ("bsp:algorithm=ring", {}, "bsp:algorithm=ring: over a process group the library behind it"),
    ("wfbp", {"failure_timeout": 5.0}, "failure_timeout: the engine is given"),
    ("asp", {"cluster": FLAT}, "asp cannot run over a process group: its members make all"),
    ("end-first", {}, "over a process group: it is due before one starts"),
]


def refused(engine, spec, options):
    model = perceptron()
    try:
        riffle.sync(model, momentum(model.parameters()), spec, engine=engine, **options).close()
    except riffle.UsageError as error:
        return str(error)
    return "taken"


def all_of_it(engine):
    group = riffle.c10d()
    return {
        "refused": [refused(group, spec, options) for spec, options, _ in REFUSED],
        "taken": [
            refused(group, "bsp:algorithm=auto", {"cluster": FLAT, "sense": False}),
            refused(engine, "bsp:algorithm=ring", {"cluster": FLAT, "sense": True}),
            refused(engine, "end-first", {}),
        ],
        "resumed": [resumed(group, spec, cluster) for spec, cluster, _ in RESUMED],
        "types": [
            (trained(engine, spec, mixed_types)[0], trained(group, spec, mixed_types)[0])
            for spec in ("wfbp", "dear", PAIRS, "dasgd:tau=4,delay=2")
        ],
        "groups": [
            without_groups(riffle.c10d(), spec, cluster)
            for spec, cluster in (
                (PAIRS, FLAT),
                ("ds-sync:pattern=bottleneck,delay=2,bucket=layer", RACKS),
                ("halves", FLAT),
            )
        ],
        "chained": [
            trained(by, spec, perceptron)[0]
            for by, spec in (
                (engine, "bsp"),
                (engine, "rows-then-columns"),
                (group, "rows-then-columns"),
            )
        ],
        "told": {spec: told(group, spec) for spec in ("wfbp", PAIRS, "gossip", "dear:bucket=1KiB")},
        "slow": slow(group),
    }


def stopped(rank, folder, spec):
    """What the others say when rank 1 stops taking part at step 3, and after how long."""

    def worker():
        model = perceptron()
        optimizer = momentum(model.parameters())
        group = riffle.c10d()
        session = riffle.sync(model, optimizer, spec, engine=group, cluster=FLAT, timeout=2)
        steps(model, optimizer, rank, 0, 3)
        began = time.monotonic()
        if rank == 1:
            time.sleep(100)
            return None
        try:
            steps(model, optimizer, rank, 3, 9)
            return "no error"
        except riffle.CommError as error:
            seconds = time.monotonic() - began
            session.close()
            closing = time.monotonic() - began - seconds
            return str(error), error.group, error.bucket, error.step, seconds, closing

    return with_gloo(folder, rank, WORKERS, worker)


class C10d(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.answers = run_with_gloo(WORKERS, all_of_it, seconds=300)

    def of(self, what):
        return [answer[what] for answer in self.answers]

    def test_resuming_is_bit_exact(self):
        for found in self.of("resumed"):
            for (spec, _, _), (whole, halves, _) in zip(RESUMED, found, strict=True):
                with self.subTest(spec=spec):
                    for key, value in whole.items():
                        self.assertTrue(torch.equal(halves[key], value), key)
        for k, (spec, _, flying) in enumerate(RESUMED):
            with self.subTest(spec=spec):
                most = max(found[k][2] for found in self.of("resumed"))
                self.assertEqual(most > 0, flying)

    def test_element_types_side_by_side(self):
        for found in self.of("types"):
            for own, over_group in found:
                for key, value in own.items():
                    self.assertLessEqual(distance(over_group[key], value), 1e-6, key)
                    self.assertEqual(over_group[key].dtype, value.dtype)

    def test_what_cannot_be_had_is_refused_with_the_reason(self):
        for found in self.of("refused"):
            for (_, options, why), said in zip(REFUSED, found, strict=True):
                self.assertIn(why, said, options)
        for found in self.of("taken"):
            self.assertEqual(found, ["taken"] * 3)

    def test_too_many_groups_run_point_to_point(self):
        for found in self.of("groups"):
            for with_groups, without, (first, again, at_last), _ in found:
                for key, value in with_groups.items():
                    self.assertLessEqual(distance(without[key], value), 1e-12)
                self.assertGreater(first, 1)
                self.assertEqual((again, at_last), (0, 0))

    def test_exchanges_start_from_results_of_other_lanes(self):
        for mean, *chained in self.of("chained"):
            for found in chained:
                for key, value in mean.items():
                    self.assertLessEqual(distance(found[key], value), 1e-12, key)

    def test_bytes_are_those_that_are_sent(self):
        sizes = [p.numel() * 8 for p in perceptron().parameters()]
        with_flags = [size + 8 for size in aligned(sizes)]
        for found in self.of("told"):
            # A ring sends 2 (n-1)/n; a pair each half and each sum, so all; gossip all to one.
            self.assertEqual(found["wfbp"][1], sum(2 * 3 * size // 4 for size in with_flags))
            self.assertEqual(found[PAIRS][1], sum(aligned(sizes)))
            self.assertEqual(found["gossip"][1], sum(aligned(sizes)))

    def test_timelines_show_every_exchange(self):
        parameters = len(list(perceptron().parameters()))
        for found in self.of("told"):
            for spec, (count, _, events) in found.items():
                with self.subTest(spec=spec):
                    self.assertEqual(count, STEPS)
                    exchanges = [e for e in events if e["kind"] == "exchange"]
                    if spec in ("wfbp", PAIRS):
                        self.assertEqual(len(exchanges), STEPS * parameters)
                    self.assertGreaterEqual(len(exchanges), STEPS)
                    for event in exchanges:
                        self.assertGreater(event["bytes"], 0)
                        self.assertGreaterEqual(event["start"], 0)
                        self.assertGreater(event["end"], event["start"])
                    self.assertTrue(any(e["kind"] == "wait" for e in events))

    def test_exposed_communication_is_what_was_waited(self):
        for rank, (late, exposed, seconds) in enumerate(self.of("slow")):
            self.assertLessEqual(exposed, seconds)
            if rank != 1:
                self.assertGreater(exposed, late / 2)

    def test_a_worker_that_stops_is_not_waited_for(self):
        for spec in ("wfbp", "dear:bucket=1KiB", PAIRS, "gossip"):
            with self.subTest(spec=spec):
                with tempfile.TemporaryDirectory() as folder:
                    workers = [start(stopped, rank, folder, spec) for rank in range(WORKERS)]
                    silent = workers.pop(1)
                    answers = gather(workers, 80)
                    gather([silent], 0)
                direct = 0
                for rank, (fine, found) in zip((0, 2, 3), answers, strict=True):
                    self.assertTrue(fine, found)
                    self.assertNotEqual(found, "no error")
                    message, group, bucket, step, seconds, closing = found
                    self.assertIn(f"in group {group}", message)
                    self.assertIn(f"step {step}", message)
                    self.assertIn(rank, group)
                    if spec in ("wfbp", "dear:bucket=1KiB"):  # others go on for a while
                        self.assertEqual(step, 3)
                    if 1 in group and bucket >= 0:
                        self.assertIn(f"bucket {bucket}", message)
                        direct += 1
                    self.assertLess(seconds + closing, 60, message)  # 2 s; machines may be busy
                self.assertGreaterEqual(direct, 1, "nobody waited for rank 1 itself")


if __name__ == "__main__":
    unittest.main()
