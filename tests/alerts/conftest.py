from collections.abc import Iterator
from typing import Any

import pytest

from tests.alerts import receivers


@pytest.fixture
def receiver(settings: Any) -> Iterator[receivers.Receiver]:
    """A receiver of this test alone; loopback is allowed."""
    settings.IPAM_ALLOW_LOOPBACK_WEBHOOKS = True
    with receivers.serving() as running:
        yield running
