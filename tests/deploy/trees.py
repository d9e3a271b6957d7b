"""Copies of the source, which a test may edit and run."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys

from tests.deploy import release

_CODE = ("manage.py", "pyproject.toml", "pools", "claims", "ipam_site", "templates", "static")
_TESTS = ("__init__.py", "servers.py", "deploy")


def copy(folder: pathlib.Path) -> pathlib.Path:
    """What commands of manage.py and of tests/deploy need; compiled, as it is here."""
    for name in (*_CODE, *(f"tests/{name}" for name in _TESTS)):
        source, target = release.PROJECT / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copy(source, target)
    return folder


def following(folder: pathlib.Path) -> pathlib.Path:
    """The release after this one, made up: it has a function, a column and an index more."""
    tree = copy(folder)
    rules = tree / "pools/sql/rules.sql"
    function = "CREATE FUNCTION is_new() RETURNS int LANGUAGE sql AS 'SELECT 1';\n"
    rules.write_text(rules.read_text() + function)
    (path,) = run(tree, "tests.deploy.frozen").stdout.splitlines()
    parent = pathlib.Path(path).stem
    new = tree / f"pools/migrations/{int(parent[:4]) + 1:04}_label.py"
    new.write_text(_COLUMN.format(parent=parent))
    return tree


_COLUMN = """
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("pools", "{parent}")]
    operations = [
        migrations.AddField("block", "label", models.CharField(max_length=9, db_default="")),
        AddIndexConcurrently("block", models.Index(fields=["label"], name="block_label")),
    ]
"""


def run(tree: pathlib.Path, *module: str) -> subprocess.CompletedProcess[str]:
    """`python -m` of the module in the tree."""
    return subprocess.run(
        [sys.executable, "-m", *module], cwd=tree, capture_output=True, text=True, check=False
    )


def migrate(tree: pathlib.Path, url: str) -> None:
    release.command(tree, url, "migrate", "--no-input", "--verbosity=0")
