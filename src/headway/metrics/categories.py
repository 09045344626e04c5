"""The categories of the ledger, in which every nanosecond of a run is counted once.

Colours come from the Okabe-Ito palette and its tints, which colour-blind people can tell apart
(Okabe and Ito, 2008, "Color Universal Design").
"""

from collections.abc import Mapping
from dataclasses import dataclass

CUSTOM = "custom:"
"""Prefix of the categories that users name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Category:
    """One leaf category of the ledger; `None` in a good column means unknown."""

    name: str
    title: str
    description: str
    colour: str
    training_good: bool | None
    infrastructure_good: bool | None


CATEGORIES: Mapping[str, Category] = {
    category.name: category
    for category in (
        Category(
            name="productive",
            title="Productive",
            description="Steps that survive: their result is in the newest state of the run.",
            colour="#009E73",
            training_good=True,
            infrastructure_good=True,
        ),
        Category(
            name="rolled_back",
            title="Rolled back",
            description="Steps that were completed and later discarded, or cut short.",
            colour="#D55E00",
            training_good=False,
            infrastructure_good=True,
        ),
        Category(
            name="checkpoint_save",
            title="Checkpoint save",
            description="The part of a checkpoint save for which training waited.",
            colour="#0072B2",
            training_good=False,
            infrastructure_good=True,
        ),
        Category(
            name="checkpoint_load",
            title="Checkpoint load",
            description="Reading back the checkpoint from which an attempt then trains.",
            colour="#56B4E9",
            training_good=False,
            infrastructure_good=True,
        ),
        Category(
            name="data_wait",
            title="Data wait",
            description="Waiting for the next batch.",
            colour="#F0E442",
            training_good=False,
            infrastructure_good=True,
        ),
        Category(
            name="evaluation",
            title="Evaluation",
            description="Validation inside the run.",
            colour="#99C7A8",
            training_good=False,
            infrastructure_good=True,
        ),
        Category(
            name="startup",
            title="Start-up",
            description="The run's first attempt, from process start to its first step.",
            colour="#8DA0CB",
            training_good=False,
            infrastructure_good=True,
        ),
        Category(
            name="stalled",
            title="Stalled",
            description="No progress and recovery not begun: hang, dead peer, detection delay.",
            colour="#882255",
            training_good=False,
            infrastructure_good=False,
        ),
        Category(
            name="restart",
            title="Restart",
            description="Recovery begun, until the new attempt's first step starts; "
            "failed starts and failed loads whole.",
            colour="#CC79A7",
            training_good=False,
            infrastructure_good=False,
        ),
        Category(
            name="down",
            title="Down",
            description="No training rank alive and nobody restarting it.",
            colour="#4D4D4D",
            training_good=False,
            infrastructure_good=False,
        ),
        Category(
            name="unattributed",
            title="Unattributed",
            description="No evidence either way; it makes each goodput a range.",
            colour="#BBBBBB",
            training_good=None,
            infrastructure_good=None,
        ),
    )
}
"""The leaf categories in the order in which people read them."""

SPARE = Category(
    name="spare",
    title="Spare",
    description="GPUs held that no rank of the attempt uses; exists in GPU time only.",
    colour="#DDDDDD",
    training_good=False,
    infrastructure_good=False,
)


def category(name: str, training_good: bool = False) -> Category:
    """Return the declaration of a category; `custom:` names are declared on the spot.

    Raises:
        ValueError: a name that is neither declared nor custom.
    """
    if name in CATEGORIES:
        return CATEGORIES[name]
    if name == SPARE.name:
        return SPARE
    if name.startswith(CUSTOM):
        return Category(
            name=name,
            title=name.removeprefix(CUSTOM),
            description="Named by the user of the recorder.",
            colour="#B39DDB",
            training_good=training_good,
            infrastructure_good=True,
        )
    raise ValueError(f"unknown category {name!r}; known: {', '.join(CATEGORIES)}, {CUSTOM}NAME")
