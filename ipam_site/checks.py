"""What `manage.py check --deploy` says of our own settings."""

from __future__ import annotations

from typing import Any

from django.core import checks

from pools.platform.outbound import faults, secrets


def key_ring(**_: Any) -> list[checks.CheckMessage]:
    """The key ring is there and valid: without it no cluster's credentials can be kept."""
    try:
        secrets.key_ring()
    except faults.KeyRingInvalid as error:
        hint = "IPAM_KEY_RING=$(openssl rand -base64 32)"
        return [checks.Error(error.message, hint=hint, id="ipam.E001")]
    return []
