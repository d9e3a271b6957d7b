from __future__ import annotations

import pytest

from tests.deploy.helm import program


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that takes `helm` runs with each program."""
    if "helm" in metafunc.fixturenames:
        metafunc.parametrize(
            "helm", program.programs() or [""], ids=lambda path: path.rpartition("/")[2]
        )


@pytest.fixture(autouse=True)
def _helm_is_installed() -> None:
    program.require_programs()
