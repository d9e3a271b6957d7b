"""Checks of Cadastre's own settings for `manage.py check --deploy`."""

from __future__ import annotations

from typing import Any

from django.core import checks

from pools.platform.outbound import faults, secrets


def key_ring(**_: Any) -> list[checks.CheckMessage]:
    """Check that the key ring is set and valid; credentials of clusters cannot be stored without it."""
    try:
        secrets.key_ring()
    except faults.KeyRingInvalid as error:
        hint = "IPAM_KEY_RING=$(openssl rand -base64 32)"
        return [checks.Error(error.message, hint=hint, id="ipam.E001")]
    return []
