"""The entry point of torchtitan: FOLDER [FAIL_AT]."""

import sys
from pathlib import Path

from torchtitan.trainer import Trainer


def main():
    trainer = Trainer(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None)
    try:
        trainer.train()
    except Exception:
        trainer.close()
        raise
    trainer.close()
