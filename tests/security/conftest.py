"""What the attacks are made at: the site in this process, or one that runs."""

import logging
import pathlib
import tempfile
from collections.abc import Iterator

import pytest

from tests import running_site
from tests.security.target import RunningTarget, Target, create_people


@pytest.fixture(scope="module")
def people(module_transaction: None) -> dict[str, str]:
    return create_people()


@pytest.fixture(scope="module")
def target(people: dict[str, str]) -> Target:
    return Target(people)


@pytest.fixture(scope="package")
def running() -> Iterator[RunningTarget]:
    with running_site.used() as data, tempfile.TemporaryDirectory() as folder:
        created = RunningTarget(data, pathlib.Path(folder))
        try:
            yield created
        finally:
            created.up.end()


@pytest.fixture
def quiet() -> Iterator[None]:
    """Thousands of refusals are not worth a line each."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
