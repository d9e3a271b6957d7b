from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.alerts import receivers

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def receiver(settings: Any) -> Iterator[receivers.Receiver]:
    """A receiver of this test alone; loopback is allowed."""
    settings.IPAM_ALLOW_LOOPBACK_WEBHOOKS = True
    with receivers.serving() as running:
        yield running
