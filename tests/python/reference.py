"""What weight-mixing strategies must compute, written down a second time.

N replicas are trained by plain torch in this process; after (or before) their local updates the
matrix X of their weights, a row per worker, becomes W X. The matrices and the moments at which they
apply are those of the papers; only who is in which group is taken from the strategy's programs.
`interpret` knows no paper and takes everything from the programs; a test compares the two.
Nothing here uses the runtime, the simulators or the verifier.
"""

from collections.abc import Callable, Iterable

import torch
from tasks import batch, flat, loss_of

Groups = list[list[int]]
GroupsOf = Callable[[int], Groups]  # by step


def partition_matrix(groups: Groups, workers: int) -> torch.Tensor:
    """W_ij = 1/|G| where i and j share a group."""
    w = torch.eye(workers, dtype=torch.float64)
    for group in groups:
        for i in group:
            w[i] = 0
            w[i, group] = 1 / len(group)
    return w


def mean_matrix(workers: int) -> torch.Tensor:
    return torch.full((workers, workers), 1 / workers, dtype=torch.float64)


def shift_matrix(workers: int, places: int) -> torch.Tensor:
    """Each keeps half and takes half of the worker so many places back."""
    w = torch.zeros(workers, workers, dtype=torch.float64)
    for i in range(workers):
        w[i, i] += 0.5
        w[i, (i - places) % workers] += 0.5
    return w


class Replicas:
    """N models with an optimizer each."""

    def __init__(self, workers: int, make_model: Callable, make_optimizer: Callable) -> None:
        self.models = [make_model() for _ in range(workers)]
        self.optimizers = [make_optimizer(model.parameters()) for model in self.models]
        self.workers = workers

    def weights(self) -> torch.Tensor:
        return torch.stack([flat(model) for model in self.models])

    @torch.no_grad()
    def set_weights(self, x: torch.Tensor) -> None:
        for model, row in zip(self.models, x, strict=True):
            torch.nn.utils.vector_to_parameters(row.clone(), model.parameters())

    def backward(self, step: int) -> None:
        for rank, model in enumerate(self.models):
            self.optimizers[rank].zero_grad()
            loss_of(model, batch(rank, step)).backward()

    def update(self) -> None:
        for optimizer in self.optimizers:
            optimizer.step()


def adapt_then_combine(replicas: Replicas, steps: int, matrix: Callable) -> None:
    """X <- W_t (X - updates): sesgd, ds-sync, gossip, in the order of papers.md 1.2 and 2.1."""
    for step in range(steps):
        replicas.backward(step)
        replicas.update()
        replicas.set_weights(matrix(step) @ replicas.weights())


def combine_then_adapt(replicas: Replicas, steps: int, matrix: Callable) -> None:
    """The mean of what workers held after step t joins just before the update of step t+1, whose
    gradient was taken at the weights that were not mixed yet."""
    travelling = None
    for step in range(steps):
        replicas.backward(step)
        if travelling is not None:
            w, snapshot = travelling
            replicas.set_weights(replicas.weights() + w @ snapshot - snapshot)
        replicas.update()
        travelling = (matrix(step), replicas.weights())


def local_sgd(replicas: Replicas, steps: int, tau: int) -> None:
    for step in range(steps):
        replicas.backward(step)
        replicas.update()
        if step % tau == tau - 1:
            replicas.set_weights(mean_matrix(replicas.workers) @ replicas.weights())


def dasgd(replicas: Replicas, steps: int, tau: int, delay: int, xi: float | None) -> None:
    """papers.md 4.1 (xi) and the delta rule of 4.2 (None). A merge comes before the snapshot that
    is due at the same time."""
    snapshot, due = None, -1
    mean = mean_matrix(replicas.workers)
    for step in range(steps):
        replicas.backward(step)
        replicas.update()
        if step == due:
            x = replicas.weights()
            if xi is None:
                replicas.set_weights(x + mean @ snapshot - snapshot)
            else:
                replicas.set_weights(xi * x + (1 - xi) * (mean @ snapshot))
        if step % tau == tau - 1:
            snapshot, due = replicas.weights(), step + delay


def diloco(replicas: Replicas, steps: int, tau: int, rate: float, momentum: float) -> None:
    """The outer optimizer is torch's own Nesterov SGD, on the last agreed weights."""
    agreed = torch.nn.Parameter(replicas.weights()[0].clone())
    outer = torch.optim.SGD([agreed], lr=rate, momentum=momentum, nesterov=momentum > 0)
    for step in range(steps):
        replicas.backward(step)
        replicas.update()
        if step % tau == tau - 1:
            agreed.grad = agreed.detach() - replicas.weights().mean(0)
            outer.step()
            replicas.set_weights(agreed.detach().expand(replicas.workers, -1))


def ds_sync_delayed(
    replicas: Replicas, steps: int, delay: int, racks: GroupsOf, delegates: Callable
) -> None:
    """papers.md 2.2 with delay: racks average after every update; what delegates held when their
    gradients were ready is averaged across racks and, `delay` steps later, corrects each delegate
    by the size of its group times the difference, just before its rack's average."""
    travelling: dict[int, tuple[list[int], torch.Tensor]] = {}
    for step in range(steps):
        replicas.backward(step)
        who = delegates(step)
        if who:
            travelling[step + delay] = (who, replicas.weights()[who])
        replicas.update()
        x = replicas.weights()
        if step in travelling:
            who, snapshot = travelling.pop(step)
            sizes = torch.tensor(
                [len(next(g for g in racks(step) if rank in g)) for rank in who],
                dtype=torch.float64,
            )
            mean = (sizes / sizes.sum()) @ snapshot
            x[who] += sizes[:, None] * (mean - snapshot)
        replicas.set_weights(partition_matrix(racks(step), replicas.workers) @ x)


def interpret(replicas: Replicas, steps: int, program: Callable) -> None:
    """The rules of riffle/program.h read aloud, for programs that mix weights: they hold for every
    strategy, whatever its name. `program` gives the exchanges of one bucket by step."""
    flights: list[tuple] = []  # an exchange, the step it is due in, the weights it left with
    agreed = replicas.weights()  # of outer optimizers
    velocity = torch.zeros_like(agreed)

    def start(step: int, *points: str) -> None:
        for exchange in program(step):
            if exchange.start in points and len(exchange.group) > 1:
                flights.append((exchange, step + exchange.due.steps, replicas.weights()))

    def join(exchange: object, sent: torch.Tensor, x: torch.Tensor) -> None:
        group, merge = exchange.group, exchange.merge
        weights = torch.tensor(exchange.weights or [1.0] * len(group), dtype=torch.float64)
        if exchange.collective == "shift":
            mean = shift_matrix(len(group), exchange.shift) @ sent[group]
        else:
            mean = (weights / weights.sum() @ sent[group]).expand(len(group), -1)
        if merge.kind == "replace":
            x[group] = mean
        elif merge.kind == "mix":
            x[group] = merge.xi * x[group] + (1 - merge.xi) * mean
        elif merge.kind == "correct":
            scales = exchange.scales or [merge.scale] * len(group)
            x[group] += torch.tensor(scales, dtype=torch.float64)[:, None] * (mean - sent[group])
        else:
            moved = agreed[group] - mean
            velocity[group] = merge.momentum * velocity[group] + moved
            agreed[group] -= merge.learning_rate * (moved + merge.momentum * velocity[group])
            x[group] = agreed[group]

    def merge_due(step: int, point: str) -> None:
        others = []
        x = replicas.weights()
        for exchange, due, sent in flights:
            if due == step and exchange.due.point == point:
                join(exchange, sent, x)
            else:
                others.append((exchange, due, sent))
        flights[:] = others
        replicas.set_weights(x)

    for step in range(steps):
        merge_due(step, "before_forward")
        replicas.backward(step)
        start(step, "bucket_ready", "backward_done")
        merge_due(step, "before_step")
        replicas.update()
        merge_due(step, "after_step")
        start(step, "bucket_stepped", "step_done")
    merge_due(steps, "before_forward")


def disjoint(groups: Iterable[list[int]]) -> Groups:
    """The groups of one bucket of a step, each once."""
    seen: Groups = []
    for group in groups:
        if group not in seen:
            seen.append(group)
    return seen
