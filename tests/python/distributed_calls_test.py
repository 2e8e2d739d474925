"""Calls of the backend "riffle" in all their forms: reductions, shapes, futures, timeouts."""

import unittest

import torch  # noqa: F401  the test is skipped where there is none
from distributed_scripts import run


class DistributedCalls(unittest.TestCase):
    def test_reductions(self):
        run("""
        ops = dist.ReduceOp
        twice = torch._C._distributed_c10d._make_nccl_premul_sum
        floats = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
        for dtype in floats:
            for op, want in ((ops.AVG, 2), (ops.PRODUCT, 6), (ops.MIN, 1), (ops.MAX, 3),
                             (twice(2.0), 12), (twice(torch.tensor([2.0], dtype=dtype)), 12)):
                t = torch.full((70001,), rank + 1, dtype=dtype)
                dist.all_reduce(t, op=op)
                assert (t == want).all(), (dtype, op, t)
                t = torch.full((9,), rank + 1, dtype=dtype)
                dist.reduce(t, 1, op=op)
                assert (t == (want if rank == 1 else rank + 1)).all(), (dtype, op, t)
                t = torch.zeros(3, dtype=dtype)
                dist.reduce_scatter_tensor(t, torch.full((9,), rank + 1, dtype=dtype), op=op)
                assert (t == want).all(), (dtype, op, t)
        # Added in 16 bits, the small ones would be lost one by one.
        for dtype, large in ((torch.float16, 2048), (torch.bfloat16, 256)):
            t = torch.full((1001,), large if rank == 0 else 1).to(dtype)
            dist.all_reduce(t)
            assert (t == large + 2).all(), t
        for dtype in (torch.complex64, torch.complex128):
            for op, want in ((ops.SUM, 6 + 3j), (ops.AVG, 2 + 1j), (twice(2.0), 12 + 6j)):
                t = torch.full((1001,), rank + 1 + 1j, dtype=dtype)
                dist.all_reduce(t, op=op)
                assert (t == want).all(), (dtype, op, t)
        for t, op in ((torch.ones(2, dtype=torch.complex64), ops.MAX), (torch.ones(2), ops.BAND),
                      (torch.ones(2, dtype=torch.bool), ops.AVG)):
            try:
                dist.reduce(t, 0, op=op)
                raise AssertionError("taken")
            except ValueError as error:
                assert "riffle: no " in str(error) or "complex" in str(error), error
        dist.all_reduce(torch.ones(2))  # what nobody could answer breaks nothing
        """)

    def test_shapes(self):
        run("""
        def made(count):  # every other element: not contiguous
            return torch.zeros(2 * count)[::2], torch.full((2 * count,), rank + 1.0)[::2]

        for count in (0, 1, 7, 5000):
            _, t = made(count)
            dist.all_reduce(t)
            assert (t == 6).all()
            _, t = made(count)
            dist.broadcast(t, 2)
            assert (t == 3).all()
            _, t = made(count)
            dist.reduce(t, 0)
            assert (t == (6 if rank == 0 else rank + 1)).all()
            o = [made(count)[0] for _ in range(size)]
            dist.all_gather(o, made(count)[1])
            assert all((o[r] == r + 1).all() for r in range(size))
            o = [made(count)[0] for _ in range(size)] if rank == 1 else None
            dist.gather(made(count)[1], o, 1)
            assert o is None or all((o[r] == r + 1).all() for r in range(size))
            o, t = made(count)
            dist.scatter(o, [t + r for r in range(size)] if rank == 1 else None, 1)
            assert (o == 2 + rank).all()
            o = [made(count)[0] for _ in range(size)]
            dist.all_to_all(o, [made(count)[1] for _ in range(size)])
            assert all((o[r] == r + 1).all() for r in range(size))
            o, t = made(count)
            dist.reduce_scatter(o, [t + r for r in range(size)])
            assert (o == 6 + 3 * rank).all()
            o, t = made(count)
            works = [dist.irecv(o, (rank - 1) % size), dist.isend(t, (rank + 1) % size)]
            [work.wait() for work in works]
            assert (o == (rank - 1) % size + 1).all()
        many = [torch.full((n,), rank + 1.0) for n in (3, 0, 1000)]
        with dist._coalescing_manager():
            for t in many:
                dist.all_reduce(t)
        assert all((t == 6).all() for t in many)
        dist.all_reduce_coalesced(many)
        assert all((t == 18).all() for t in many)
        o = [[torch.zeros(2), torch.zeros(2, 2)] for _ in range(size)]
        dist.all_gather_coalesced(o, [torch.full((2,), 1.0 + rank), torch.full((2, 2), 2.0 + rank)])
        assert all((o[r][0] == 1 + r).all() and (o[r][1] == 2 + r).all() for r in range(size))
        t = torch.sparse_coo_tensor([[rank, 4]], [1.0, 2.0], (6,))
        dist.all_reduce(t)
        assert t.to_dense().tolist() == [1, 1, 1, 0, 6, 0], t
        for op in (dist.ReduceOp.MAX, dist.ReduceOp.AVG):
            try:
                dist.all_reduce(t, op=op)
                raise AssertionError("taken")
            except ValueError as error:
                assert "sparse" in str(error), error
        """)

    def test_futures(self):
        run("""
        groups = [dist.new_group([0, 1, 2]) for _ in range(2)]
        seen = [[], []]
        works = []
        for i in range(60):
            t = torch.full((i * 97 % 3000 + 1,), float(i))
            work = dist.all_reduce(t, group=groups[i % 2], async_op=True)
            work.get_future().then(lambda f, i=i: seen[i % 2].append((i, f.value()[0][0].item())))
            works.append(work)
        for i in reversed(range(60)):  # who waits for the last has waited for those before
            works[i].wait()
            assert works[i].is_completed() and works[i].get_future().done()
        for k in (0, 1):
            assert seen[k] == [(i, 3.0 * i) for i in range(k, 60, 2)], seen[k]
        # A callback that makes a call of its own, on another group.
        t, u = torch.ones(5), torch.ones(5)
        then = dist.all_reduce(t, group=groups[0], async_op=True).get_future().then(
            lambda f: dist.all_reduce(u, group=groups[1], async_op=True))
        then.wait().wait()
        assert (u == 3).all()
        """)

    def test_timeouts(self):
        outputs = run(
            """
        from torch.distributed import distributed_c10d as c10d
        cpu = torch.device("cpu")
        calls, group = [dist.new_group([0, 1]) for _ in range(2)]
        late = dist.new_group([0, 1], timeout=timedelta(seconds=1))
        group._get_backend(cpu).set_timeout(timedelta(seconds=1))
        options = dist.AllreduceOptions()
        options.timeout = timedelta(seconds=1)
        store = c10d._get_default_store()
        if rank == 1:
            store.wait(["done0"])
        for what, call in (
            ("call", lambda: calls._get_backend(cpu).allreduce([torch.ones(3)], options).wait()),
            ("set", lambda: dist.all_reduce(torch.ones(3), group=group)),
            ("made", lambda: dist.all_reduce(torch.ones(3), group=late)),
        ):
            try:
                call()
                print(what, "unnoticed")
            except dist.DistBackendError as error:
                print(what, str(error).splitlines()[0])
        store.set(f"done{rank}", "")
        dist.all_reduce(torch.ones(3))  # of the group that nothing happened to
        """,
            workers=2,
        )
        lines = outputs[0].splitlines()
        self.assertEqual([line.split()[0] for line in lines], ["call", "set", "made"])
        for line in lines:
            for word in ("all_reduce", "sequence number 1", "timeout", "rank 1"):
                self.assertIn(word, line)

    def test_mismatches_are_named(self):
        outputs = run("""
        ones = lambda count, dtype=torch.float32: torch.ones(count, dtype=dtype)
        for name, usual, other in (
            ("type", lambda g: dist.all_reduce(ones(4), group=g),
                     lambda g: dist.all_reduce(ones(4, torch.float64), group=g)),
            ("reduction", lambda g: dist.all_reduce(ones(4), group=g),
                          lambda g: dist.all_reduce(ones(4), dist.ReduceOp.MAX, group=g)),
            ("collective", lambda g: dist.all_reduce(ones(4), group=g),
                           lambda g: dist.barrier(group=g)),
            ("root", lambda g: dist.reduce(ones(4), 0, group=g),
                     lambda g: dist.reduce(ones(4), 1, group=g)),
            ("shape", lambda g: dist.all_gather([ones(4) for _ in range(size)], ones(4), group=g),
                      lambda g: dist.all_gather([ones(5) for _ in range(size)], ones(5), group=g)),
        ):
            group = dist.new_group([0, 1, 2])
            try:
                (other if rank == 1 else usual)(group)
                print(name, "unnoticed")
            except dist.DistBackendError as error:
                print(name, str(error).splitlines()[0])
        dist.barrier()
        """)
        lines = [output.splitlines() for output in outputs]
        words = {
            "type": ("4 f32", "4 f64"),
            "reduction": ("sum", "max"),
            "collective": ("all_reduce", "barrier"),
            "root": ("to member 0", "to member 1"),
            "shape": ("all_gather", "made another call", "rank 1"),
        }
        for place, (name, wanted) in enumerate(words.items()):
            told = [each[place] for each in lines]
            self.assertTrue(all(line.startswith(name) for line in told), told)
            for line in told:
                for word in wanted:
                    self.assertIn(word, line)


if __name__ == "__main__":
    unittest.main()
