"""The calls of Megatron-LM's training loop, in their order."""

from pathlib import Path

import torch

from megatron.training import get_args

TRACKER = "latest_checkpointed_iteration.txt"


def pretrain():
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    args = get_args()
    args.iteration, _ = load_checkpoint(None, None, None)
    train(None, None)
    maybe_finalize_async_save()
    evaluate_and_print_results("test", None)


def load_checkpoint(model, optimizer, opt_param_scheduler):
    tracker = Path(get_args().save) / TRACKER
    return (int(tracker.read_text()) if tracker.exists() else 0), 0


def save_checkpoint(iteration, model, optimizer, opt_param_scheduler):
    """Writes the tracker when the next step comes, as a background write would."""
    get_args().unfinished = iteration


def maybe_finalize_async_save():
    args = get_args()
    if getattr(args, "unfinished", None):
        (Path(args.save) / TRACKER).write_text(str(args.unfinished))


def evaluate_and_print_results(prefix, iteration):
    pass


def train_step(iteration):
    if iteration == get_args().fail_at:
        raise ValueError("no such batch")


def train(model, optimizer):
    args = get_args()
    iteration = args.iteration
    while iteration < args.train_iters:
        maybe_finalize_async_save()
        iteration += 1
        train_step(iteration)
        if iteration % 10 == 0:
            evaluate_and_print_results("validation", iteration)
        if iteration % args.save_interval == 0:
            save_checkpoint(iteration, model, optimizer, None)
    maybe_finalize_async_save()
