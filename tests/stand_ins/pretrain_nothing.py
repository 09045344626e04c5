"""A program of Megatron-LM: FOLDER [FAIL_AT]."""

import sys

from megatron.training import get_args
from megatron.training.training import pretrain

arguments = get_args()
arguments.save = sys.argv[1]
arguments.fail_at = int(sys.argv[2]) if len(sys.argv) > 2 else None
pretrain()
