"""A strategy of your own, in Python: who exchanges what with whom, as data.

    torchrun --nproc-per-node 4 custom_strategy.py     (or mpirun, srun, riffle launch, or python)

The same class is proved, simulated and run.
"""

import torch

import riffle


@riffle.register
class Neighbours(riffle.Strategy):
    """workers on a circle average weights in pairs, shifted by one every step"""

    name = "neighbours"

    def program(self, step, world, buckets):
        """The exchanges of a step; the same on every worker, so it asks for nobody's rank."""
        turn = step % 2
        ranks = world.ranks[turn:] + world.ranks[:turn]
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
        """What the verifier holds it to."""
        return riffle.schedule.Traits(period=2, mixed="weight")


model = torch.nn.Linear(30, 1)
truth = torch.randn(30, generator=torch.Generator().manual_seed(0))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

with riffle.sync(model, optimizer, strategy="neighbours") as session:
    random = torch.Generator().manual_seed(1 + session.rank)
    for _ in range(200):
        x = torch.randn(16, 30, generator=random)
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x).squeeze(1), x @ truth).backward()
        optimizer.step()
    apart = session.consensus_distance()

if session.rank == 0:
    proof = riffle.verify("neighbours", 8)
    rate = riffle.simulate("resnet50", "flat:8,latency=1ms,bandwidth=1Gbps", "neighbours")
    error = (model.weight.squeeze(0) - truth).abs().max()
    print(
        f"proved for 8 workers: {proof.ok}, disagreement shrinks to {proof.mixing_rate:.0%} a step"
    )
    print(f"simulated: ResNet-50 takes {1000 * rate.iteration_seconds:.0f} ms a step at 1 Gbit/s")
    print(f"run: {session.size} workers, off by {error:.4f}, apart by {apart:.2g}")
