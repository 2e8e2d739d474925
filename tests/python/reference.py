"""What strategies must compute, written down a second time.

N replicas are trained by plain torch in this process; after (or before) their local updates the
matrix X of their weights, a row per worker, becomes W X. The matrices and the moments at which they
apply are those of the papers; only who is in which group is taken from the strategy's programs.
Statistics (float buffers) are averaged where weights are, but never extrapolated and never by an
outer optimizer. `interpret` knows no paper and takes everything from the programs; a test compares
the two. Nothing here uses the runtime, the simulators or the verifier.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

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


def corrected(local: torch.Tensor, mean: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
    """Statistics by the delta rule; a variance that it would make vanish takes the smaller one."""
    value = local + mean - before
    vanishes = (value <= 0) & (local > 0) & (mean > 0) & (before > 0)
    return torch.where(vanishes, torch.minimum(local, mean), value)


class Replicas:
    """N models with an optimizer each."""

    def __init__(
        self,
        workers: int,
        make_model: Callable,
        make_optimizer: Callable,
        loss: Callable | None = None,
        mix_state: bool = False,
    ) -> None:
        self.models = [make_model() for _ in range(workers)]
        self.optimizers = [make_optimizer(model.parameters()) for model in self.models]
        self.workers = workers
        self._loss = loss or (lambda model, rank, step: loss_of(model, batch(rank, step)))
        self._mix_state = mix_state

    def weights(self) -> torch.Tensor:
        return torch.stack([flat(model) for model in self.models])

    @torch.no_grad()
    def set_weights(self, x: torch.Tensor) -> None:
        for model, row in zip(self.models, x, strict=True):
            torch.nn.utils.vector_to_parameters(row.clone(), model.parameters())

    def statistics(self) -> torch.Tensor:
        """A row per worker, empty without float buffers."""
        rows = [
            [b.flatten() for b in model.buffers() if b.is_floating_point()] for model in self.models
        ]
        return torch.stack([torch.cat([torch.empty(0, dtype=torch.float64), *r]) for r in rows])

    def set_statistics(self, x: torch.Tensor) -> None:
        for model, row in zip(self.models, x, strict=True):
            buffers = [b for b in model.buffers() if b.is_floating_point()]
            for b, part in zip(buffers, row.split([b.numel() for b in buffers]), strict=True):
                b.copy_(part.view(b.shape))

    def _momenta(self) -> list[list[torch.Tensor]]:
        return [
            [optimizer.state[p]["momentum_buffer"] for p in model.parameters() if p.requires_grad]
            for model, optimizer in zip(self.models, self.optimizers, strict=True)
        ]

    def state(self) -> torch.Tensor:
        """The optimizers' momenta, a row per worker."""
        return torch.stack([torch.cat([m.flatten() for m in own]) for own in self._momenta()])

    def set_state(self, x: torch.Tensor) -> None:
        for own, row in zip(self._momenta(), x, strict=True):
            for m, part in zip(own, row.split([m.numel() for m in own]), strict=True):
                m.copy_(part.view(m.shape))

    def average(self, w: torch.Tensor) -> None:
        """Weights and statistics; the optimizers' state where it is mixed."""
        self.set_weights(w @ self.weights())
        self.set_statistics(w @ self.statistics())
        self.average_state(w)

    def average_state(self, w: torch.Tensor) -> None:
        """It is merged before the next update; nobody looks at it before that."""
        if self._mix_state:
            self.set_state(w @ self.state())

    @property
    def mixes_state(self) -> bool:
        return self._mix_state

    def backward(self, step: int) -> None:
        for rank, model in enumerate(self.models):
            self.optimizers[rank].zero_grad()
            self._loss(model, rank, step).backward()

    def update(self) -> None:
        for optimizer in self.optimizers:
            optimizer.step()


def synchronous(replicas: Replicas, steps: int) -> None:
    """Exact strategies: all update with the mean gradient. Statistics stay each worker's own."""
    for step in range(steps):
        replicas.backward(step)
        for same in zip(*(model.parameters() for model in replicas.models), strict=True):
            grads = [p.grad for p in same if p.grad is not None]
            mean = sum(grads) / replicas.workers if grads else None
            for p in same:
                p.grad = mean
        replicas.update()


def adapt_then_combine(replicas: Replicas, steps: int, matrix: Callable) -> None:
    """X <- W_t (X - updates): sesgd, ds-sync, gossip, in the order of papers.md 1.2 and 2.1."""
    for step in range(steps):
        replicas.backward(step)
        replicas.update()
        replicas.average(matrix(step))


def combine_then_adapt(replicas: Replicas, steps: int, matrix: Callable) -> None:
    """The mean of what workers held after step t joins just before the update of step t+1, whose
    gradient was taken at the weights that were not mixed yet."""
    travelling = None
    for step in range(steps):
        replicas.backward(step)
        if travelling is not None:
            w, x, s = travelling
            replicas.set_weights(replicas.weights() + w @ x - x)
            replicas.set_statistics(corrected(replicas.statistics(), w @ s, s))
        replicas.update()
        travelling = (matrix(step), replicas.weights(), replicas.statistics())
        replicas.average_state(matrix(step))


def local_sgd(replicas: Replicas, steps: int, tau: int) -> None:
    for step in range(steps):
        replicas.backward(step)
        replicas.update()
        if step % tau == tau - 1:
            replicas.average(mean_matrix(replicas.workers))


def dasgd(replicas: Replicas, steps: int, tau: int, delay: int, xi: float, mix: bool) -> None:
    """papers.md 4.1 (mix, by xi) and the delta rule of 4.2. A merge comes before the snapshot that
    is due at the same time. The optimizers' state has no delta rule, which could turn second
    moments negative: with it, the mean replaces it."""
    travelling, due = None, -1
    mean = mean_matrix(replicas.workers)
    local = xi if mix else 0.0

    def interpolated(now: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
        return local * now + (1 - local) * (mean @ before)

    for step in range(steps):
        replicas.backward(step)
        replicas.update()
        if step == due:
            x, s, state = travelling
            now, statistics = replicas.weights(), replicas.statistics()
            if mix:
                replicas.set_weights(interpolated(now, x))
                replicas.set_statistics(interpolated(statistics, s))
            else:
                replicas.set_weights(now + mean @ x - x)
                replicas.set_statistics(corrected(statistics, mean @ s, s))
            if replicas.mixes_state:
                replicas.set_state(interpolated(replicas.state(), state))
        if step % tau == tau - 1:
            state = replicas.state() if replicas.mixes_state else None
            travelling, due = (replicas.weights(), replicas.statistics(), state), step + delay


def diloco(replicas: Replicas, steps: int, tau: int, rate: float, momentum: float) -> None:
    """The outer optimizer is torch's own Nesterov SGD, on the last agreed weights."""
    agreed = torch.nn.Parameter(replicas.weights()[0].clone())
    outer = torch.optim.SGD([agreed], lr=rate, momentum=momentum, nesterov=momentum > 0)
    mean = mean_matrix(replicas.workers)
    for step in range(steps):
        replicas.backward(step)
        replicas.update()
        if step % tau == tau - 1:
            agreed.grad = agreed.detach() - replicas.weights().mean(0)
            outer.step()
            replicas.set_weights(agreed.detach().expand(replicas.workers, -1))
            replicas.set_statistics(mean @ replicas.statistics())
            replicas.average_state(mean)


def slowmo(
    replicas: Replicas, steps: int, tau: int, alpha: float, beta: float, learning_rate: float
) -> None:
    """As the paper writes it, with the workers' constant learning rate: u <- beta u + (x_old -
    mean)/lr, x <- x_old - alpha lr u."""
    old = replicas.weights()[0]
    u = torch.zeros_like(old)
    mean = mean_matrix(replicas.workers)
    for step in range(steps):
        replicas.backward(step)
        replicas.update()
        if step % tau == tau - 1:
            u = beta * u + (old - replicas.weights().mean(0)) / learning_rate
            old = old - alpha * learning_rate * u
            replicas.set_weights(old.expand(replicas.workers, -1))
            replicas.set_statistics(mean @ replicas.statistics())
            replicas.average_state(mean)


def noloco(replicas: Replicas, steps: int, rate: float, momentum: float, pairs: GroupsOf) -> None:
    """Worker i has slow weights y and momentum m: m <- mu m + a mean(x - y) + a (mean(y) - y) over
    its pair, y <- y + m, x <- y."""
    y = replicas.weights()
    m = torch.zeros_like(y)
    for step in range(steps):
        replicas.backward(step)
        replicas.update()
        met = pairs(step)
        if not met:
            continue
        w = partition_matrix(met, replicas.workers)
        x = replicas.weights()
        m = momentum * m + rate * (w @ (x - y)) + rate * (w @ y - y)
        y = y + m
        replicas.set_weights(y)
        replicas.set_statistics(w @ replicas.statistics())
        replicas.average_state(w)


@dataclass
class Fragment:
    """What of the model takes a turn: elements of the weights, of the optimizer's state."""

    weights: slice
    state: slice
    statistics: bool  # they travel with the last one


def streaming_diloco(
    replicas: Replicas,
    steps: int,
    fragments: list[Fragment],
    tau: int,
    overlap: int,
    alpha: float,
    rate: float,
    momentum: float,
) -> None:
    """Algorithm 2 of arXiv:2501.18512: fragment p of P leaves at its own offset in the round and
    is merged `overlap` steps later. The outer optimizer, torch's own Nesterov SGD, steps its global
    copy along (global - mean of what left); then x <- alpha x + (1 - alpha) global."""
    count = len(fragments)
    globals_ = [torch.nn.Parameter(replicas.weights()[0][f.weights].clone()) for f in fragments]
    outers = [torch.optim.SGD([g], lr=rate, momentum=momentum, nesterov=True) for g in globals_]
    travelling: dict[int, tuple[torch.Tensor, ...]] = {}

    def leave(p: int) -> None:
        state = replicas.state() if replicas.mixes_state else torch.empty(0)
        travelling[p] = (replicas.weights(), replicas.statistics(), state)

    def arrive(p: int) -> None:
        fragment = fragments[p]
        weights, statistics, state = (sent.mean(0) for sent in travelling.pop(p))
        globals_[p].grad = globals_[p].detach() - weights[fragment.weights]
        outers[p].step()
        x, local = replicas.weights(), alpha if overlap else 0.0
        agreed = globals_[p].detach()
        x[:, fragment.weights] = local * x[:, fragment.weights] + (1 - local) * agreed
        replicas.set_weights(x)
        if fragment.statistics:
            replicas.set_statistics(local * replicas.statistics() + (1 - local) * statistics)
        if replicas.mixes_state:
            now = replicas.state()
            mixed = local * now[:, fragment.state] + (1 - local) * state[fragment.state]
            now[:, fragment.state] = mixed
            replicas.set_state(now)

    for step in range(steps):
        replicas.backward(step)
        replicas.update()
        offsets = [(p + 1) * tau // count - 1 for p in range(count)]
        for p, offset in enumerate(offsets):
            if p in travelling and (step - overlap - offset) % tau == 0:
                arrive(p)
        for p, offset in enumerate(offsets):
            if step % tau == offset:
                leave(p)
                if overlap == 0:
                    arrive(p)


def ds_sync_delayed(
    replicas: Replicas, steps: int, delay: int, racks: GroupsOf, delegates: Callable
) -> None:
    """papers.md 2.2 with delay: racks average after every update; what delegates held when their
    gradients were ready is averaged across racks and, `delay` steps later, corrects each delegate
    by the size of its group times the difference, just before its rack's average. Statistics are
    corrected by the difference itself."""
    travelling: dict[int, tuple[list[int], torch.Tensor, torch.Tensor]] = {}
    for step in range(steps):
        replicas.backward(step)
        who = delegates(step)
        if who:
            travelling[step + delay] = (who, replicas.weights()[who], replicas.statistics()[who])
        replicas.update()
        x, s = replicas.weights(), replicas.statistics()
        if step in travelling:
            who, snapshot, statistics = travelling.pop(step)
            sizes = torch.tensor(
                [len(next(g for g in racks(step) if rank in g)) for rank in who],
                dtype=torch.float64,
            )
            share = sizes / sizes.sum()
            x[who] += sizes[:, None] * (share @ snapshot - snapshot)
            s[who] = corrected(s[who], (share @ statistics).expand_as(statistics), statistics)
        replicas.set_weights(x)
        replicas.set_statistics(s)
        replicas.average(partition_matrix(racks(step), replicas.workers))


def interpret(
    replicas: Replicas, steps: int, program: Callable, columns: list[slice] | None = None
) -> None:
    """The rules of riffle/program.h read aloud, for programs that mix weights: they hold for every
    strategy, whatever its name. `program` gives the exchanges of one bucket by step; or of all of
    them, where `columns` tells the elements of each."""
    flights: list[tuple] = []  # an exchange, the step it is due in, the weights it left with
    agreed = replicas.weights()  # of outer optimizers
    velocity = torch.zeros_like(agreed)

    def start(step: int, *points: str) -> None:
        for exchange in program(step):
            if exchange.start in points and len(exchange.group) > 1:
                flights.append((exchange, step + exchange.due.steps, replicas.weights()))

    def join(exchange: object, *rows: torch.Tensor) -> None:
        here = slice(None) if columns is None else columns[exchange.bucket]
        sent, x, agreed, velocity = (each[:, here] for each in rows)
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
            along = velocity[group]
            if merge.nesterov:
                along = moved + merge.momentum * velocity[group]
            agreed[group] -= merge.learning_rate * along
            x[group] = merge.xi * x[group] + (1 - merge.xi) * agreed[group]

    def merge_due(step: int, point: str) -> None:
        others = []
        x = replicas.weights()
        for exchange, due, sent in flights:
            if due == step and exchange.due.point == point:
                join(exchange, sent, x, agreed, velocity)
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
