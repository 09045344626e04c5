"""Stop a build whose links are not links; everything else is declared in pyproject.toml.

A checkout without symbolic links (git's `core.symlinks=false`) holds text files in their place, and
setuptools would build a wheel without the linked packages.
"""

import sys
from pathlib import Path

from setuptools import setup

LINKS = ("alerts", "collector", "dashboard", "exporter", "grafana", "storage")


def complaint(root: Path) -> str | None:
    """Return what is wrong with the links under `root`; in an unpacked sdist they are folders."""
    for name in LINKS:
        link = root / "src" / "headway" / name
        linked = link.is_symlink() if (root / name).is_dir() else link.is_dir()
        if not linked or not (link / "__init__.py").is_file():
            return (
                f"src/headway/{name} is not a link to {name}/: run "
                "'git config core.symlinks true && git checkout -- src/headway' and build again"
            )
    return None


if __name__ == "__main__":
    found = complaint(Path(__file__).resolve().parent)
    if found is not None:
        sys.exit(found)
    setup()
