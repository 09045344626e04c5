"""The arguments of Megatron-LM."""

from types import SimpleNamespace

ARGUMENTS = SimpleNamespace(
    train_iters=20, save_interval=5, tensor_model_parallel_size=1, pipeline_model_parallel_size=1
)


def get_args():
    return ARGUMENTS
