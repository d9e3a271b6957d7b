"""Copies of the source, which a test may edit and run."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys

from tests.deploy import release

_CODE = ("manage.py", "pyproject.toml", "pools", "claims", "ipam_site", "templates", "static")
_TESTS = ("__init__.py", "servers.py", "deploy")
_LEFT_OUT = shutil.ignore_patterns("__pycache__")


def copy(folder: pathlib.Path) -> pathlib.Path:
    """What commands of manage.py and of tests/deploy need."""
    for name in (*_CODE, *(f"tests/{name}" for name in _TESTS)):
        source, target = release.PROJECT / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=_LEFT_OUT)
        else:
            shutil.copy(source, target)
    return folder


def run(tree: pathlib.Path, *module: str) -> subprocess.CompletedProcess[str]:
    """`python -m` of the module in the tree."""
    return subprocess.run(
        [sys.executable, "-m", *module], cwd=tree, capture_output=True, text=True, check=False
    )


def migrate(tree: pathlib.Path, url: str) -> None:
    release.command(tree, url, "migrate", "--no-input", "--verbosity=0")
