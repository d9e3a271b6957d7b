"""The API server of the handlers: a fake for each test, or with --real one kube-apiserver for all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.kube.api_servers import (
    definitions,
    erased,
    pytest_generate_tests,
    real_cluster,
    server,
)

if TYPE_CHECKING:
    from tests.pools.conftest import Clock


@pytest.fixture
def clock(db: None) -> Clock:
    from tests.pools.conftest import Clock

    return Clock()
