"""The API server of the handlers, and an administrator's browser."""

import pytest
from django.test import Client

from tests import people
from tests.kube.api_servers import (
    definitions,
    erased,
    pytest_generate_tests,
    real_cluster,
    server,
)


@pytest.fixture
def browser(db: None) -> Client:
    """As an administrator."""
    return people.browser()
