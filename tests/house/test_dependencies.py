"""What is installed is what is declared, pinned and free to be used."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS: Mapping[str, list[str]] = PROJECT["project"]["optional-dependencies"]

_FREE = re.compile(
    r"\b(?:Apache|MIT|BSD|ISC|PSF|Python Software Foundation|MPL|Mozilla|Unlicense|HPND|Zlib|"
    r"CC0|0BSD)\b",
    re.IGNORECASE,
)
"""Licences under which a library may be part of a closed product."""
_BOUND = re.compile(r"(?<!L)\bA?GPL\b|GNU (?:Affero )?General", re.IGNORECASE)


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    found = (line.partition("==") for line in lines if line and not line.startswith("#"))
    return {canonicalize_name(name): version for name, _, version in found}


def needed(*extras: str) -> Iterator[str]:
    """Yield every package that the extras bring, with what brings it, as installed here."""
    waiting = [requirement for extra in extras for requirement in EXTRAS[extra]]
    seen: set[str] = set()
    while waiting:
        requirement = Requirement(waiting.pop())
        name = canonicalize_name(requirement.name)
        if requirement.marker is not None and not any(
            requirement.marker.evaluate({"extra": extra}) for extra in ("", *requirement.extras)
        ):
            continue
        if name in seen:
            continue
        seen.add(name)
        try:
            found = distribution(name)
        except PackageNotFoundError:
            continue
        yield name
        for extra in requirement.extras:
            waiting += [line for line in found.requires or () if f'"{extra}"' in line]
        waiting += [line for line in found.requires or () if "extra ==" not in line]


@pytest.mark.parametrize("extra", sorted(EXTRAS))
def test_every_requirement_has_a_pin_that_fits_it(extra: str) -> None:
    for line in EXTRAS[extra]:
        requirement = Requirement(line)
        pinned = pins().get(canonicalize_name(requirement.name))
        assert pinned is not None, f"{requirement.name} is not in constraints.txt"
        assert requirement.specifier.contains(pinned), f"{line}, but constraints.txt has {pinned}"


def test_every_package_that_comes_along_is_pinned() -> None:
    known = {*pins(), "setuptools"}
    assert sorted(set(needed(*EXTRAS)) - known) == []


@pytest.mark.parametrize("extra", ["exporter", "server"])
def test_what_users_install_is_under_a_licence_that_binds_nobody(extra: str) -> None:
    for name in needed(extra):
        metadata = distribution(name).metadata
        said = [
            metadata.get("License-Expression") or "",
            (metadata.get("License") or "")[:200],
            *(line for line in metadata.get_all("Classifier") or () if line.startswith("License")),
        ]
        words = " | ".join(said)
        assert _FREE.search(words), f"{name}: no licence that is known here in {words!r}"
        assert not _BOUND.search(words), f"{name}: {words!r}"
