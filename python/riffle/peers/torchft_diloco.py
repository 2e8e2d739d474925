"""torchft-diloco: DiLoCo of torchft, every rank a replica group of its own, with its lighthouse."""

from __future__ import annotations

import os
import socket
from datetime import timedelta
from typing import TYPE_CHECKING

from riffle.peers.peer import WHOLE_NUMBER, Option, Options, Peer, Running

if TYPE_CHECKING:
    from riffle.peers.work import Work

DEADLINE = timedelta(seconds=300)  # of everything that waits; a dilated period may be long
LIGHTHOUSE = 1  # ports above the master's

# torchft imports OpenTelemetry, which it sends nothing to unless asked.
PACKAGES = (
    "torchft==0.2.0",
    "certifi==2026.10.18",
    "charset-normalizer==3.5.2",
    "googleapis-common-protos==1.76.0",
    "idna==3.20",
    "importlib_metadata==8.7.1",
    "opentelemetry-api==1.39.0",
    "opentelemetry-exporter-otlp-proto-common==1.39.0",
    "opentelemetry-exporter-otlp-proto-http==1.39.0",
    "opentelemetry-proto==1.39.0",
    "opentelemetry-sdk==1.39.0",
    "opentelemetry-semantic-conventions==0.60b0",
    "protobuf==6.33.6",
    "requests==2.34.2",
    "urllib3==2.8.0",
    "zipp==4.1.2",
)


def _how(options: Options) -> str:
    return (
        f"torchft.local_sgd.DiLoCo on its Gloo, one replica group per rank, lighthouse beside "
        f"rank 0, outer SGD 0.7 with Nesterov momentum 0.9 every {options['tau']} steps, "
        f"one all-reduce per parameter (its default); SCHED_BATCH"
    )


def _own_address() -> str:
    """The one from which this host reaches the master; no packet is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((os.environ["MASTER_ADDR"], 9))
        return probe.getsockname()[0]


class _Running(Running):
    def __init__(self, model, optimizer, diloco, manager, lighthouse, store) -> None:
        super().__init__(model, optimizer)
        self._diloco, self._manager, self._lighthouse = diloco, manager, lighthouse
        self._store = store  # others' groups meet in it
        diloco.__enter__()

    def close(self) -> None:
        """All ranks have taken their last step."""
        self._diloco.__exit__(None, None, None)
        self._manager.shutdown(wait=False)
        if self._lighthouse is not None:
            self._lighthouse.shutdown()


def _start(work: Work, options: Options) -> Running:
    import torch
    import torch.distributed as dist

    os.environ.setdefault("RUST_LOG", "error")
    from torchft.coordination import LighthouseServer
    from torchft.local_sgd import DiLoCo
    from torchft.manager import Manager
    from torchft.process_group import ProcessGroupGloo

    rank, size, own = dist.get_rank(), dist.get_world_size(), _own_address()
    port = int(os.environ["MASTER_PORT"]) + LIGHTHOUSE
    lighthouse = LighthouseServer(f"[::]:{port}", min_replicas=size) if rank == 0 else None
    dist.barrier()
    store = dist.TCPStore(own, 0, is_master=True, wait_for_workers=False, timeout=DEADLINE)
    optimizer = work.optimizer(work.module)
    manager = Manager(
        pg=ProcessGroupGloo(timeout=DEADLINE),
        load_state_dict=work.module.load_state_dict,
        state_dict=work.module.state_dict,
        min_replica_size=size,
        use_async_quorum=False,
        timeout=DEADLINE,
        quorum_timeout=DEADLINE,
        connect_timeout=DEADLINE,
        rank=0,
        world_size=1,
        store_addr=own,
        store_port=store.port,
        lighthouse_addr=f"http://{os.environ['MASTER_ADDR']}:{port}",
        replica_id=f"rank{rank}",
        hostname=own,
        init_sync=False,  # all ranks begin with the same seed
        max_retries=0,  # a failed exchange is an error here, not a step to be repeated in silence
    )
    outer = torch.optim.SGD(work.module.parameters(), lr=0.7, momentum=0.9, nesterov=True)
    diloco = DiLoCo(manager, [work.module], optimizer, outer, sync_every=int(options["tau"]))
    return _Running(work.module, optimizer, diloco, manager, lighthouse, store)


TORCHFT_DILOCO = Peer(
    name="torchft-diloco",
    what="torchft's DiLoCo: tau local steps, then an outer step on the averaged difference",
    options=(Option("tau", WHOLE_NUMBER, "20"),),
    packages=lambda options: PACKAGES,
    modules=("torchft.local_sgd", "torchft.coordination"),
    how=_how,
    period=lambda options, workers: int(options["tau"]),
    start=_start,
)
