"""A small training that Lightning drives: python lightning_training.py PACKAGE FOLDER [FAIL_AT]

Resumes from the newest checkpoint in FOLDER; fails in the batch with number FAIL_AT.
"""

import importlib
import sys
import warnings
from pathlib import Path

import torch

warnings.simplefilter("ignore")  # Lightning's advice on workers and GPUs
package, folder = sys.argv[1], Path(sys.argv[2])
fail_at = int(sys.argv[3]) if len(sys.argv) > 3 else None
pl = importlib.import_module(package)
plugins = importlib.import_module(f"{package}.plugins.io")
callbacks = importlib.import_module(f"{package}.callbacks")

from headway.exporter.callbacks.for_lightning import HeadwayCallback  # noqa: E402  # after its base


class Line(pl.LightningModule):
    """Fits a line, two micro-batches to a step."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def training_step(self, batch, batch_idx):
        if batch_idx == fail_at:
            raise ValueError("no such batch")
        return torch.nn.functional.mse_loss(self.layer(batch), 2 * batch)

    def validation_step(self, batch, batch_idx):
        self.layer(batch)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


saves = callbacks.ModelCheckpoint(dirpath=folder, every_n_train_steps=5, save_top_k=-1)
trainer = pl.Trainer(
    default_root_dir=folder,
    accelerator="cpu",
    max_steps=20,
    max_epochs=1,
    accumulate_grad_batches=2,
    val_check_interval=16,
    limit_val_batches=2,
    callbacks=[HeadwayCallback("line"), saves],
    plugins=[plugins.AsyncCheckpointIO()],
    logger=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
data = torch.utils.data.DataLoader(torch.rand(100, 1), batch_size=2)
newest = max(folder.glob("*.ckpt"), key=lambda path: path.stat().st_mtime_ns, default=None)
trainer.fit(Line(), data, data, ckpt_path=newest)
