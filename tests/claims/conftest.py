"""The API server of the handlers, a network, and an administrator's browser."""

import pytest
from django.test import Client

from claims.models import IPPool, Network
from tests import people
from tests.claims import worlds
from tests.edges.api import Api
from tests.kube.api_servers import definitions, erased, pytest_generate_tests, real_cluster, server


@pytest.fixture
def browser(db: None) -> Client:
    """As an administrator."""
    return people.browser()


@pytest.fixture
def network(db: None) -> Network:
    """Of a layer2 primary network, with 10.0.0.0/24."""
    return worlds.network()


@pytest.fixture
def ippool(network: Network) -> IPPool:
    return worlds.ippool(network)


@pytest.fixture
def api(db: None) -> Api:
    """As an administrator."""
    return Api()
