"""One running site for the attacks."""

from __future__ import annotations

import pathlib
import tempfile
from collections.abc import Iterator

import pytest

from tests import running_site
from tests.security.target import Target


@pytest.fixture(scope="package")
def target() -> Iterator[Target]:
    with running_site.used() as data, tempfile.TemporaryDirectory() as folder:
        found = Target(data, pathlib.Path(folder))
        try:
            yield found
        finally:
            found.up.end()
