"""Checkpoint files: whole or not at all; what is torn, foreign, newer or another's is refused."""

import json
import tempfile
import unittest
from pathlib import Path

import torch

from riffle import UsageError
from riffle.train import checkpoint


def save(home, step, rank=0, workers=1):
    header = {"step": step, "rank": rank, "workers": workers, "settings": {"task": "digits"}}
    checkpoint.save(home, header, {"x": torch.arange(1000) + step})


class Checkpoint(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.home = self._folder.name
        for step in (10, 20, 30):
            save(self.home, step)
            checkpoint.publish(self.home, step)
        self.file = Path(self.home) / "step-000000030" / "rank-0.ckpt"
        self.earlier = Path(self.home) / "step-000000020"

    def refused(self, *words, rank=0, size=1):
        with self.assertRaises(UsageError) as caught:
            checkpoint.load(self.home, rank, size)
        for word in words:
            self.assertIn(word, str(caught.exception))

    def test_the_latest_is_loaded_and_one_before_is_kept(self):
        header, state = checkpoint.load(self.home, 0, 1)
        self.assertEqual(header["step"], 30)
        self.assertEqual(state["x"][0], 30)
        self.assertEqual(
            sorted(p.name for p in Path(self.home).glob("step-*")),
            ["step-000000020", "step-000000030"],
        )

    def test_every_cut_is_refused_and_the_earlier_one_named(self):
        content = self.file.read_bytes()
        for length in (0, 1, 30, 150, len(content) // 2, len(content) - 1):
            self.file.write_bytes(content[:length])
            self.refused(str(self.file), f"--resume {self.earlier}")
        self.assertEqual(checkpoint.load(str(self.earlier), 0, 1)[0]["step"], 20)

    def test_a_changed_bit_is_refused(self):
        content = bytearray(self.file.read_bytes())
        content[-100] ^= 4
        self.file.write_bytes(content)
        self.refused("is damaged: its SHA-256 differs")

    def test_a_changed_header_is_refused(self):
        line, _, rest = self.file.read_bytes().partition(b"\n")
        self.file.write_bytes(line.replace(b'"digits"', b'"images"') + b"\n" + rest)
        self.refused("is damaged: its SHA-256 differs")

    def test_the_step_that_was_resumed_from_is_kept(self):
        self.file.write_bytes(b"torn")
        save(self.home, 25)
        checkpoint.publish(self.home, 25)
        self.assertEqual(
            sorted(p.name for p in Path(self.home).glob("step-*")),
            ["step-000000020", "step-000000025"],
        )

    def test_a_foreign_file_is_refused(self):
        torch.save({"x": 1}, self.file)
        self.refused("is no checkpoint of riffle")

    def test_a_newer_file_is_refused(self):
        line, _, rest = self.file.read_bytes().partition(b"\n")
        document = json.loads(line) | {"version": 9}
        self.file.write_bytes(json.dumps(document).encode() + b"\n" + rest)
        self.refused("is of version 9, this riffle knows 1")

    def test_a_newer_list_is_refused(self):
        (Path(self.home) / "latest.json").write_text('{"riffle": "checkpoints", "version": 9}')
        self.refused("is of version 9")

    def test_another_number_of_workers_is_refused(self):
        self.refused("rank 0 of 1", "same number of workers", size=2)

    def test_no_checkpoint_at_all(self):
        self.home = f"{self.home}/nothing"
        self.refused("latest.json: is missing")

    def test_an_unpublished_step_is_not_used(self):
        save(self.home, 40)
        self.assertEqual(checkpoint.load(self.home, 0, 1)[0]["step"], 30)

    def test_a_failing_write_leaves_the_old_content(self):
        path = Path(self.home) / "x"
        checkpoint.write_whole(path, b"old")
        with self.assertRaises(TypeError):
            checkpoint.write_whole(path, 5)
        self.assertEqual(path.read_bytes(), b"old")
        self.assertEqual([p.name for p in path.parent.glob(".x*")], [])


if __name__ == "__main__":
    unittest.main()
