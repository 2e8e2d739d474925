"""Accelerate on riffle's collectives:
torchrun --nproc-per-node 2 examples/python/accelerate_backend.py

Needs accelerate, from PyPI. One line differs from the same script on Gloo: the process group is
made before the Accelerator, which takes it as it is.
"""

import torch
import torch.distributed as dist
from accelerate import Accelerator

import riffle.distributed  # noqa: F401

dist.init_process_group("riffle")
accelerator = Accelerator(cpu=True)
torch.manual_seed(0)
data = torch.utils.data.TensorDataset(torch.randn(6400, 8))
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
loader = torch.utils.data.DataLoader(data, batch_size=32, shuffle=True)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for (x,) in loader:
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    accelerator.backward(loss)
    optimizer.step()
loss = accelerator.gather(loss.detach()).mean().item()
if accelerator.is_main_process:
    print(f"loss {loss:.4f} on {accelerator.num_processes} workers, {dist.get_backend()}")
accelerator.end_training()  # and the process group
