"""A NetBox that the tests of this folder read."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.register_imports import netbox_server
from tests.register_imports.netbox_server import NetBox


@pytest.fixture
def server(settings: Any) -> Iterator[NetBox]:
    settings.IPAM_ALLOW_LOOPBACK_NETBOX = True
    with netbox_server.serving() as netbox:
        yield netbox
