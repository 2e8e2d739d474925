"""Peers that die or freeze in any call of the backend "riffle" are named."""

import re
import unittest

import torch  # noqa: F401  the test is skipped where there is none
from distributed_scripts import run

CALLS = {
    "all_reduce": "dist.all_reduce(torch.ones(1000))",
    "all_reduce of many": "dist.all_reduce_coalesced([torch.ones(9), torch.ones(1000)])",
    "sparse all_reduce": "dist.all_reduce(torch.sparse_coo_tensor([[1]], [1.0], (6,)))",
    "broadcast": "dist.broadcast(torch.ones(1000), 2)",
    "reduce": "dist.reduce(torch.ones(1000), 0)",
    "all_gather": "dist.all_gather([torch.ones(9) for _ in range(size)], torch.ones(9))",
    "reduce_scatter": "dist.reduce_scatter_tensor(torch.ones(9), torch.ones(9 * size))",
    "all_to_all": "dist.all_to_all_single(torch.ones(size), torch.ones(size))",
    "gather": "dist.gather(torch.ones(9), [torch.ones(9) for _ in range(size)] "
    "if rank == 0 else None, 0)",
    "scatter": "dist.scatter(torch.ones(9), None, 2)",
    "barrier": "dist.barrier()",
    "monitored_barrier": "dist.group.WORLD.monitored_barrier(timedelta(seconds=20))",
    "send": "dist.send(torch.ones(10_000_000), 2)",
    "recv": "dist.recv(torch.ones(9), 2)",
    "recv from any": "dist.recv(torch.ones(9))",
}
# Of a gather only the root waits.
ROOT_ONLY = ("gather", "reduce")

SCRIPT = """
store = dist.distributed_c10d._get_default_store()
dist.barrier()
if rank == 2:
    os.kill(os.getpid(), signal.{sign})
time.sleep(0.2)
began = time.monotonic()
try:
    {call}
    print("unnoticed" if {waits} else "nothing to wait for")
except dist.DistBackendError as error:
    print("error", error, "took", round(time.monotonic() - began, 2))
sys.stdout.flush()
store.set(f"done{{rank}}", "")  # who leaves before the others would be missed too
try:
    store.wait([f"done{{1 - rank}}"], timedelta(seconds=40))
except dist.DistError:
    pass
time.sleep(0.5)
os._exit(0)
"""


class DistributedFailure(unittest.TestCase):
    def test_dead_peers_are_named(self):
        self._check_all("SIGKILL")

    def test_frozen_peers_are_named(self):
        self._check_all("SIGSTOP")

    def _check_all(self, sign: str) -> None:
        slowest = 0.0
        for name, call in CALLS.items():
            with self.subTest(name, sign=sign):
                slowest = max(slowest, self._check(name, call, sign))
        print(f"{len(CALLS)} calls, {sign}: named after {slowest} s at most")

    def _check(self, name: str, call: str, sign: str) -> float:
        waits = "rank == 0" if name in ROOT_ONLY else "rank != 2"
        outputs = run(
            SCRIPT.format(sign=sign, call=call, waits=waits),
            check=False,
            waits_for=2,
            RIFFLE_FAILURE_TIMEOUT="3s",
        )
        took = []
        for rank, output in enumerate(outputs):
            if rank == 1 and name in ROOT_ONLY:
                continue
            self.assertRegex(output, r"^error riffle: |^error \[Rank 0\]")
            self.assertIn(name.split(" of ")[0].split(" from ")[0], output)
            # Of a monitored barrier, member 0 watches the others, who wait for it.
            if not (name == "monitored_barrier" and rank == 1):
                self.assertRegex(output, "(?i)rank 2")
            self.assertRegex(output, r"group 0")
            took.append(float(re.search(r"took ([\d.]+)", output)[1]))
        return max(took)


if __name__ == "__main__":
    unittest.main()
