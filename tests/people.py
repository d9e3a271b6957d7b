"""Users for the tests of the admin, with the permissions of their role, and their browsers."""

import itertools
from collections.abc import Iterable
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.test import Client

_numbers = itertools.count(1)
_TABLES = (
    "pool", "block", "cluster", "environment", "allocationrequest", "event",
    "connection", "syncrun", "observedobject", "finding", "drift",
)  # fmt: skip

VIEWER = tuple(f"view_{table}" for table in _TABLES)
OPERATOR = (
    *VIEWER,
    "allocate",
    "add_pool",
    "change_pool",
    "delete_pool",
    "reconcile",
    "change_drift",
)
ADMINISTRATOR = (
    *OPERATOR, "force_release", "add_cluster", "change_cluster", "delete_cluster", "add_connection",
    "change_connection", "delete_connection",
)  # fmt: skip


def user(permissions: Iterable[str] = (), **settings: Any) -> Any:
    """A member of the staff; `is_superuser=True` may do everything."""
    person = get_user_model().objects.create(
        username=f"person-{next(_numbers)}", is_staff=True, **settings
    )
    person.user_permissions.set(
        Permission.objects.filter(content_type__app_label="pools", codename__in=permissions)
    )
    return person


def browser(permissions: Iterable[str] | None = None, **options: Any) -> Client:
    """Logged in as somebody with these permissions, without any given as a superuser."""
    return signed_in(user(permissions or (), is_superuser=permissions is None), **options)


def signed_in(person: Any, **options: Any) -> Client:
    """Logged in as this user."""
    client = Client(**options)
    client.force_login(person)
    return client
