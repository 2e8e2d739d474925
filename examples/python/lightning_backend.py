"""Lightning on riffle's collectives:
torchrun --nproc-per-node 2 examples/python/lightning_backend.py

Needs lightning, from PyPI. One word differs from the same script on Gloo: the name of the backend.
"""

import lightning
import torch
from lightning.pytorch.strategies import DDPStrategy

import riffle.distributed  # noqa: F401


class Sum(lightning.LightningModule):
    """Learns to add up eight numbers."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)

    def training_step(self, batch, index):
        """The loss of a batch."""
        (x,) = batch
        loss = (self.layer(x) - x.sum(1, keepdim=True)).square().mean()
        self.log("loss", loss, sync_dist=True)  # the mean over all workers
        return loss

    def configure_optimizers(self):
        """Any of torch's."""
        return torch.optim.SGD(self.parameters(), lr=0.05)


lightning.seed_everything(0, verbose=False)
data = torch.utils.data.TensorDataset(torch.randn(6400, 8))
trainer = lightning.Trainer(
    accelerator="cpu",
    devices=2,
    strategy=DDPStrategy(process_group_backend="riffle"),
    max_epochs=1,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(Sum(), torch.utils.data.DataLoader(data, batch_size=32))
if trainer.global_rank == 0:
    backend = torch.distributed.get_backend()
    print(f"loss {trainer.callback_metrics['loss']:.4f} on {trainer.world_size} workers, {backend}")
