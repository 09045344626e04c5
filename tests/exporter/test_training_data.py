"""The data set is the same everywhere and the loader resumes at any sample."""

import warnings
from itertools import islice

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # torch about pynvml
    import torch

    from headway.exporter.training.data import Arithmetic, ResumableLoader

DATA = Arithmetic(num_samples=20, length=8, seed=3)


def loader(*, rank: int = 0, world_size: int = 1, consumed: int = 0) -> ResumableLoader:
    made = ResumableLoader(DATA, global_batch=6, rank=rank, world_size=world_size, seed=5)
    made.consumed = consumed
    return made


def inputs(source: ResumableLoader, batches: int) -> list[list[list[int]]]:
    return [batch.inputs.tolist() for batch in islice(source, batches)]


def test_a_sample_is_the_same_whenever_it_is_read() -> None:
    again = Arithmetic(num_samples=20, length=8, seed=3)
    assert all(torch.equal(DATA[index], again[index]) for index in range(20))


def test_targets_are_the_tokens_that_follow() -> None:
    batch = next(iter(loader()))
    assert torch.equal(batch.inputs[:, 1:], batch.targets[:, :-1])


@pytest.mark.parametrize("done", [0, 1, 3, 7])
def test_a_loader_resumed_after_some_batches_yields_the_rest(done: int) -> None:
    assert inputs(loader(), 10)[done:] == inputs(loader(consumed=6 * done), 10 - done)


def test_two_ranks_share_the_batches_of_one() -> None:
    whole = inputs(loader(), 5)
    halves = [inputs(loader(rank=rank, world_size=2), 5) for rank in (0, 1)]
    assert whole == [first + second for first, second in zip(*halves, strict=True)]


def test_an_epoch_repeats_no_sample_and_the_next_has_another_order() -> None:
    epochs = inputs(loader(), 6)
    first = [tuple(tokens) for batch in epochs[:3] for tokens in batch]
    assert len(set(first)) == 18
    assert epochs[:3] != epochs[3:]


def test_consumed_counts_the_samples_of_all_ranks() -> None:
    source = loader(rank=1, world_size=2)
    inputs(source, 4)
    assert source.consumed == 24


@pytest.mark.parametrize(("global_batch", "world_size"), [(5, 2), (21, 1)])
def test_a_batch_that_cannot_be_shared_or_filled_is_refused(
    global_batch: int, world_size: int
) -> None:
    with pytest.raises(ValueError, match=f"a global batch of {global_batch} samples must be"):
        ResumableLoader(DATA, global_batch=global_batch, rank=0, world_size=world_size, seed=5)
