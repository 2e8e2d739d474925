"""Other libraries for training on several workers, run unmodified beside ours in the same lab.

    python -m riffle.peers --list
    python -m riffle.peers --prepare decent-dp:topology=ring

A peer is one file with one `Peer`; `PEERS` lists them. Importing this imports no torch.
"""

from riffle._core import UsageError
from riffle.peers.decent_dp import DECENT_DP
from riffle.peers.peer import Options, Peer
from riffle.peers.torch_ddp import TORCH_DDP
from riffle.peers.torch_localsgd import TORCH_LOCALSGD
from riffle.peers.torchft_diloco import TORCHFT_DILOCO

__all__ = ["PEERS", "Options", "Peer", "peer_of"]

PEERS = {peer.name: peer for peer in (TORCH_DDP, TORCH_LOCALSGD, DECENT_DP, TORCHFT_DILOCO)}


def peer_of(spec: str) -> tuple[Peer, Options]:
    """Of `name` or `name:key=value,...`; what is not known is answered with what is."""
    name, _, words = spec.partition(":")
    if name not in PEERS:
        raise UsageError(f"no peer '{name}'; known: {', '.join(PEERS)}")
    return PEERS[name], PEERS[name].parse(words)
