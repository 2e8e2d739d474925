"""DistributedDataParallel on riffle: torchrun --nproc-per-node 2 examples/python/ddp_backend.py

Two lines differ from the same script on Gloo: the import, and the name of the backend.
"""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import riffle.distributed  # <- one  # noqa: F401

dist.init_process_group("riffle")  # <- two
torch.manual_seed(dist.get_rank())  # every worker has data of its own
model = DistributedDataParallel(torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for _ in range(100):
    x = torch.randn(32, 8)
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
if dist.get_rank() == 0:
    print(f"loss {loss.item():.4f} on {dist.get_world_size()} workers")
dist.destroy_process_group()
