import pytest
from django.test import Client

from tests.claims.imports import pages
from tests.edges.api import Api


@pytest.fixture
def api(db: None) -> Api:
    """As an operator."""
    return Api("operator")


@pytest.fixture
def client(db: None) -> Client:
    """As an operator."""
    return pages.browser()
