"""What a strategy's programs ask of the training loop."""

from dataclasses import dataclass

from riffle import _core

_STEPS_OF_A_RANDOM_SCHEDULE = 8


@dataclass(frozen=True)
class Needs:
    """Which points of a step matter to a strategy."""

    forward: bool  # something is due before forward
    ready: bool  # something starts before the optimizer's step
    per_bucket: bool  # weights are mixed as soon as their bucket is updated
    postpones: bool  # gradients are complete only in the next forward


def needs_of(session: _core.Session) -> Needs:
    """Read off the programs of a whole period; random schedules differ in groups only."""
    strategy, world, buckets = session.strategy, session.world, session.buckets
    period = strategy.traits(world, buckets).period or _STEPS_OF_A_RANDOM_SCHEDULE
    exchanges = [
        exchange
        for step in range(period)
        for exchange in strategy.program(step, world, buckets).exchanges
    ]
    weights = [e for e in exchanges if e.payload == "weight"]
    gradients = [e for e in exchanges if e.payload == "gradient"]
    return Needs(
        forward=any(e.due.point == "before_forward" for e in exchanges),
        ready=any(e.start in ("bucket_ready", "backward_done") for e in exchanges),
        per_bucket=any(e.start == "bucket_stepped" for e in weights),
        postpones=any(e.due.point == "before_forward" for e in gradients),
    )
