"""Checks of Cadastre's own settings for `manage.py check`."""

import os
import re
from collections.abc import Iterator
from typing import Any
from urllib import parse

from django.conf import settings
from django.core import checks

from claims.core import directory_groups
from ipam_site.sign_on import ldap_settings
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
    if (settings.IPAM_OIDC_ISSUER or settings.IPAM_LDAP_URL) and not roles and not pattern:
        yield (
            "IPAM_SIGN_ON_ROLES",
            "no group of the directory grants anything: nobody can sign in",
        )
    if settings.IPAM_LDAP_URL:
        yield from _ldap_errors()
    if settings.IPAM_OIDC_ISSUER:
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
    yield from _file_errors("IPAM_OIDC_CA_FILE")


def _ldap_errors() -> Iterator[tuple[str, str]]:
    if not ldap_settings.is_installed():
        yield "IPAM_LDAP_URL", "LDAP needs the packages of requirements-ldap.txt"
    urls = [parse.urlsplit(url) for url in re.split(r"[\s,]+", settings.IPAM_LDAP_URL)]
    schemes = {url.scheme for url in urls}
    if schemes not in ({"ldap"}, {"ldaps"}) or not all(url.hostname for url in urls):
        yield "IPAM_LDAP_URL", "must be ldaps:// URLs, or ldap:// URLs for StartTLS"
    is_set = (r".+", "must be set, because IPAM_LDAP_URL is")
    is_attribute = (r"[A-Za-z][A-Za-z0-9-]*", "must be the name of an attribute")
    is_filter = (r"\(.+\)", "must be a filter in parentheses")
    for name, (pattern, message) in {
        "IPAM_LDAP_USER_BASE": is_set,
        "IPAM_LDAP_GROUP_BASE": is_set,
        "IPAM_LDAP_USERNAME_ATTRIBUTE": is_attribute,
        "IPAM_LDAP_ID_ATTRIBUTE": is_attribute,
        "IPAM_LDAP_GROUP_FILTER": is_filter,
    }.items():
        if not re.fullmatch(pattern, getattr(settings, name)):
            yield name, message
    if settings.IPAM_LDAP_GROUP_TYPE not in ldap_settings.GROUP_TYPES:
        yield "IPAM_LDAP_GROUP_TYPE", f"must be one of {', '.join(ldap_settings.GROUP_TYPES)}"
    yield from _file_errors("IPAM_LDAP_CA_FILE")


def _file_errors(name: str) -> Iterator[tuple[str, str]]:
    path = getattr(settings, name)
    if path and not os.access(path, os.R_OK):
        yield name, f"{path} cannot be read"
