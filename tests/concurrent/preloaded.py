"""Loaded once by the server that all client processes are forked from."""

import os

from tests.concurrent import crowd, doors

if "DJANGO_SETTINGS_MODULE" in os.environ:
    doors.setup_django()
    from pools.platform import idempotency
    from pools.register.allocator import allocation
    from tests import factories

    LOADED = (allocation, crowd, factories, idempotency)
