"""FSDP on riffle's collectives: torchrun --nproc-per-node 2 examples/python/fsdp_backend.py

Every worker keeps a part of the parameters; they are gathered layer by layer when needed.
"""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

import riffle.distributed  # noqa: F401

dist.init_process_group("riffle")
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
fully_shard(model, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
torch.manual_seed(dist.get_rank())
for _ in range(200):
    x = torch.randn(32, 8)
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
if dist.get_rank() == 0:
    print(f"loss {loss.item():.4f} on {dist.get_world_size()} workers")
dist.destroy_process_group()
