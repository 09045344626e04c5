"""A small training that Transformers drives: python transformers_training.py FOLDER [FAIL_AT]

Resumes from the newest checkpoint in FOLDER; fails in the micro-batch with number FAIL_AT.
"""

import sys
from pathlib import Path

import torch
from transformers import Trainer, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

from headway.exporter.callbacks.for_transformers import HeadwayCallback

folder = Path(sys.argv[1])
fail_at = int(sys.argv[2]) if len(sys.argv) > 2 else None


class Line(torch.nn.Module):
    """Fits a line."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.calls = 0

    def forward(self, x, labels=None):
        self.calls += self.training
        if self.calls == fail_at:
            raise ValueError("no such batch")
        y = self.layer(x)
        return {"loss": torch.nn.functional.mse_loss(y, labels), "logits": y}


trainer = Trainer(
    model=Line(),
    args=TrainingArguments(
        output_dir=str(folder),
        max_steps=20,
        per_device_train_batch_size=2,
        gradient_accumulation_steps=2,
        save_strategy="steps",
        save_steps=5,
        eval_strategy="steps",
        eval_steps=10,
        logging_steps=1,
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
    ),
    train_dataset=[{"x": torch.ones(1) * n, "labels": torch.ones(1) * n} for n in range(100)],
    eval_dataset=[{"x": torch.ones(1), "labels": torch.ones(1)}] * 4,
    callbacks=[HeadwayCallback("line")],
)
trainer.train(resume_from_checkpoint=get_last_checkpoint(str(folder)))
