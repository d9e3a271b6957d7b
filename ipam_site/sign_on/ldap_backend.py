"""Sign-in with the password of an LDAP directory, in the form for accounts of this site (django-auth-ldap).

Needs the packages of requirements-ldap.txt. The connection is always encrypted, and the certificate verified.
"""

from __future__ import annotations

import logging
from typing import Any

import ldap
from django.conf import settings
from django_auth_ldap import backend, config

from claims.access import directory
from claims.access.directory import Person
from ipam_site.sign_on.ldap_settings import GROUP_TYPES, DirectoryUnreachable
from pools.models import DirectorySource

_TIMEOUT = 5

log = logging.getLogger(__name__)


class Directory(backend.LDAPBackend):
    @property
    def default_settings(self) -> dict[str, Any]:
        """Return django-auth-ldap's settings (without AUTH_LDAP_), from those of this site."""
        attribute, group_type = settings.IPAM_LDAP_USERNAME_ATTRIBUTE, settings.IPAM_LDAP_GROUP_TYPE
        return {
            "SERVER_URI": settings.IPAM_LDAP_URL,
            "START_TLS": not settings.IPAM_LDAP_URL.lower().startswith("ldaps://"),
            "BIND_DN": settings.IPAM_LDAP_BIND_DN,
            "BIND_PASSWORD": settings.IPAM_LDAP_BIND_PASSWORD,
            "USER_SEARCH": config.LDAPSearch(
                settings.IPAM_LDAP_USER_BASE, ldap.SCOPE_SUBTREE, f"({attribute}=%(user)s)"
            ),
            "GROUP_SEARCH": config.LDAPSearch(
                settings.IPAM_LDAP_GROUP_BASE, ldap.SCOPE_SUBTREE, settings.IPAM_LDAP_GROUP_FILTER
            ),
            "GROUP_TYPE": getattr(config, GROUP_TYPES[group_type])(),
            "ALWAYS_UPDATE_USER": False,
            "CONNECTION_OPTIONS": _connection_options(),
        }

    def get_or_build_user(self, username: str, ldap_user: Any) -> tuple[Any, bool]:
        """Return the account of a person whose password the directory has accepted. Raises SignInRefused."""
        name = _attribute(ldap_user, settings.IPAM_LDAP_USERNAME_ATTRIBUTE) or username
        person = Person(
            source=DirectorySource.LDAP,
            subject=name.casefold(),
            username=name,
            email=_attribute(ldap_user, "mail"),
            groups=sorted(ldap_user.group_names),
        )
        return directory.sign_in(person), False


def _attribute(ldap_user: Any, name: str) -> str:
    values = ldap_user.attrs.get(name) or [""]
    return values[0] if isinstance(values[0], str) else ""


def _connection_options() -> dict[int, Any]:
    options = {
        ldap.OPT_NETWORK_TIMEOUT: _TIMEOUT,
        ldap.OPT_TIMEOUT: _TIMEOUT,
        ldap.OPT_REFERRALS: 0,
        ldap.OPT_X_TLS_REQUIRE_CERT: ldap.OPT_X_TLS_DEMAND,
        ldap.OPT_X_TLS_PROTOCOL_MIN: ldap.OPT_X_TLS_PROTOCOL_TLS1_2,
    }
    if settings.IPAM_LDAP_CA_FILE:
        options[ldap.OPT_X_TLS_CACERTFILE] = settings.IPAM_LDAP_CA_FILE
    return {**options, ldap.OPT_X_TLS_NEWCTX: 0}  # last: it applies the others


def _raise_unreachable(exception: Exception, **_: Any) -> None:
    """Without it a directory that is down would look like a wrong password."""
    log.warning("sign-on: the LDAP directory failed: %s", type(exception).__name__)
    raise DirectoryUnreachable from exception


backend.ldap_error.connect(_raise_unreachable, dispatch_uid="ipam_site.sign_on")
