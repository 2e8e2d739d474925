"""Peers that die, freeze or stay away in every call of the backend "riffle" are named."""

import unittest

import torch  # noqa: F401  the test is skipped where there is none
from distributed_scripts import run


class DistributedFailure(unittest.TestCase):
    CALLS = {
        "all_reduce": "dist.all_reduce(torch.ones(1000))",
        "broadcast": "dist.broadcast(torch.ones(1000), 2)",
        "reduce": "dist.reduce(torch.ones(1000), 0)",
        "all_gather": "dist.all_gather([torch.ones(9) for _ in range(size)], torch.ones(9))",
        "reduce_scatter": "dist.reduce_scatter_tensor(torch.ones(9), torch.ones(9 * size))",
        "all_to_all": "dist.all_to_all_single(torch.ones(size), torch.ones(size))",
        "gather": "dist.gather(torch.ones(9), [torch.ones(9) for _ in range(size)] "
        "if rank == 0 else None, 0)",
        "scatter": "dist.scatter(torch.ones(9), None, 2)",
        "barrier": "dist.barrier()",
        "recv": "dist.recv(torch.ones(9), 2)",
    }

    def test_dead_and_frozen_peers_are_named(self):
        for name, call in self.CALLS.items():
            for sign in ("SIGKILL", "SIGSTOP"):
                with self.subTest(name, sign=sign):
                    self._check(name, call, sign)

    def _check(self, name: str, call: str, sign: str) -> None:
        # Of a gather only the root waits.
        waits = "rank == 0" if name in ("gather", "reduce") else "rank != 2"
        outputs = run(
            f"""
            dist.barrier()
            if rank == 2:
                if "{sign}" == "SIGSTOP":
                    if os.fork() == 0:  # wakes it up when the others are done
                        time.sleep(10)
                        os.kill(os.getppid(), signal.SIGKILL)
                        os._exit(0)
                os.kill(os.getpid(), signal.{sign})
            time.sleep(0.2)
            began = time.monotonic()
            try:
                {call}
                print("unnoticed" if {waits} else "error")
            except dist.DistBackendError as error:
                print("error", error, "took", round(time.monotonic() - began, 2))
            sys.stdout.flush()
            time.sleep(6)  # who leaves before the others would be missed too
            os._exit(0)
            """,
            check=False,
        )
        for output in outputs[:2]:
            self.assertIn("error", output)
            self.assertNotIn("unnoticed", output)
        self.assertIn("rank 2", outputs[0])
        self.assertIn(name, outputs[0])


if __name__ == "__main__":
    unittest.main()
