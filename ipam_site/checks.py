"""Checks of Cadastre's own settings for `manage.py check`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any
from urllib import parse

from django.conf import settings
from django.core import checks

from claims.core import directory_groups
from pools.platform.outbound import faults, secrets


def key_ring(**_: Any) -> list[checks.CheckMessage]:
    """Check that the key ring is set and valid; credentials of clusters cannot be stored without it."""
    try:
        secrets.key_ring()
    except faults.KeyRingInvalid as error:
        hint = "IPAM_KEY_RING=$(openssl rand -base64 32)"
        return [checks.Error(error.message, hint=hint, id="ipam.E001")]
    return []


def sign_on(**_: Any) -> list[checks.CheckMessage]:
    """Check the settings of the sign-on with a directory."""
    return [
        checks.Error(f"{name}: {message}", hint="docs/how-to/sign-on.md", id="ipam.E002")
        for name, message in _sign_on_errors()
    ]


def _sign_on_errors() -> Iterator[tuple[str, str]]:
    roles, pattern = settings.IPAM_SIGN_ON_ROLES, settings.IPAM_SIGN_ON_NAMESPACES
    for name, parse_text, text in (
        ("IPAM_SIGN_ON_ROLES", directory_groups.parse_roles, roles),
        ("IPAM_SIGN_ON_NAMESPACES", directory_groups.parse_pattern, pattern),
    ):
        try:
            parse_text(text)
        except ValueError as error:
            yield name, str(error)
    if settings.IPAM_OIDC_ISSUER:
        if not roles and not pattern:
            yield (
                "IPAM_SIGN_ON_ROLES",
                "no group of the directory grants anything: nobody can sign in",
            )
        yield from _oidc_errors()
    elif settings.IPAM_OIDC_CLIENT_ID:
        yield "IPAM_OIDC_ISSUER", "must be set, because IPAM_OIDC_CLIENT_ID is"


def _oidc_errors() -> Iterator[tuple[str, str]]:
    issuer = parse.urlsplit(settings.IPAM_OIDC_ISSUER)
    if issuer.scheme != "https" or not issuer.hostname or issuer.query or issuer.fragment:
        yield "IPAM_OIDC_ISSUER", "must be an https URL without a query"
    if not settings.IPAM_OIDC_CLIENT_ID:
        yield "IPAM_OIDC_CLIENT_ID", "must be set, because IPAM_OIDC_ISSUER is"
    if "openid" not in settings.IPAM_OIDC_SCOPES:
        yield "IPAM_OIDC_SCOPES", "must contain openid"
    if settings.IPAM_OIDC_CA_FILE and not os.access(settings.IPAM_OIDC_CA_FILE, os.R_OK):
        yield "IPAM_OIDC_CA_FILE", f"{settings.IPAM_OIDC_CA_FILE} cannot be read"
