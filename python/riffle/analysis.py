"""Reading a strategy's program without workers: is it right, how long does it take, which is best.

Strategies, traces and clusters may be given as objects or as the text the command line takes.
"""

from collections.abc import Sequence

from riffle import _core
from riffle._core import Cluster, NamedStrategy, Plan, Simulation, Trace, Verification, World
from riffle.strategy import make, table


def _trace(trace: Trace | str) -> Trace:
    return _core.load_trace(trace) if isinstance(trace, str) else trace


def _cluster(cluster: Cluster | str) -> Cluster:
    return Cluster(cluster) if isinstance(cluster, str) else cluster


def verify(
    strategy: str | NamedStrategy,
    world: World | Cluster | str | int,
    trace: Trace | str | None = None,
) -> Verification:
    """Proves or refutes the schedule for a world; a number of workers stands for small racks."""
    if isinstance(world, int):
        world = World(_core.example_racks(world))
    elif not isinstance(world, World):
        world = World(_cluster(world))
    return _core.verify(make(strategy), world, _trace(trace or _core.example_trace()))


def simulate(
    trace: Trace | str,
    cluster: Cluster | str,
    strategy: str | NamedStrategy,
    *,
    steps: int = 0,
    seed: int = 0,
) -> Simulation:
    """The time of a step. `steps=0`: until a period takes as long as the one before."""
    return _core.simulate(_trace(trace), _cluster(cluster), make(strategy), steps, seed)


def plan(
    trace: Trace | str,
    cluster: Cluster | str,
    strategies: Sequence[str] | None = None,
    *,
    seed: int = 0,
) -> Plan:
    """Ranks strategies (all known, with their parameter grids) by time per effective step."""
    specs = list(strategies) if strategies is not None else _core.candidate_specs(table())
    return _core.plan(_trace(trace), _cluster(cluster), table(), specs, seed)
