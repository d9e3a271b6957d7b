"""Sign-in with the password of an LDAP directory, in the form for accounts of this site (django-auth-ldap).

Needs the packages of requirements-ldap.txt. The connection is always encrypted, and the certificate verified.
"""

import logging
import uuid
from datetime import datetime
from typing import Any

import ldap
from django.conf import settings
from django.utils.translation import gettext
from django_auth_ldap import backend, config

from claims.access import directory
from claims.access.directory import Person, SignInRefused
from ipam_site.sign_on.ldap_settings import GROUP_TYPES, DirectoryUnreachable
from pools.models import DirectorySource

_TIMEOUT = 5
_LONGEST_ID = 255

log = logging.getLogger(__name__)


class Directory(backend.LDAPBackend):
    @property
    def default_settings(self) -> dict[str, Any]:
        """Return django-auth-ldap's settings (without AUTH_LDAP_), from those of this site."""
        attribute, group_type = settings.IPAM_LDAP_USERNAME_ATTRIBUTE, settings.IPAM_LDAP_GROUP_TYPE
        return {
            "SERVER_URI": settings.IPAM_LDAP_URL,
            # Of several URLs none is used without encryption: with both schemes none works.
            "START_TLS": "ldap://" in settings.IPAM_LDAP_URL.lower(),
            "BIND_DN": settings.IPAM_LDAP_BIND_DN,
            "BIND_PASSWORD": settings.IPAM_LDAP_BIND_PASSWORD,
            "USER_SEARCH": config.LDAPSearch(
                settings.IPAM_LDAP_USER_BASE,
                ldap.SCOPE_SUBTREE,
                f"({attribute}=%(user)s)",
                # Operational attributes come only by name.
                ["*", settings.IPAM_LDAP_ID_ATTRIBUTE, "createTimestamp"],
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
        attribute = settings.IPAM_LDAP_ID_ATTRIBUTE.casefold()
        by_name = attribute == settings.IPAM_LDAP_USERNAME_ATTRIBUTE.casefold()
        person = Person(
            source=DirectorySource.LDAP,
            # No login name contains "=": nobody can pass for another person by name.
            subject=name.casefold() if by_name else f"{attribute}={_identifier(ldap_user)}",
            former_subject="" if by_name else name.casefold(),
            created_at=_created_at(ldap_user),
            username=name,
            email=_attribute(ldap_user, "mail"),
            groups=sorted(ldap_user.group_names),
        )
        return directory.sign_in(person), False


def _attribute(ldap_user: Any, name: str) -> str:
    values = ldap_user.attrs.get(name) or [""]
    return values[0] if isinstance(values[0], str) else ""


def _identifier(ldap_user: Any) -> str:
    """Return what identifies the entry in the directory for ever. Raises SignInRefused if the entry has no such value."""
    attribute = settings.IPAM_LDAP_ID_ATTRIBUTE
    values = ldap_user.attrs.get(attribute) or []
    value = values[0] if len(values) == 1 else ""
    if attribute.casefold() == "objectguid":
        # 16 bytes, which django-auth-ldap has decoded if they happen to be UTF-8.
        octets = value.encode() if isinstance(value, str) else value
        value = str(uuid.UUID(bytes_le=octets)) if len(octets) == 16 else ""
    if isinstance(value, str) and value.isprintable() and 0 < len(value) <= _LONGEST_ID:
        return value.casefold()
    log.error(
        "sign-on refused: ldap_id_missing: the directory sent no valid %s of %r (IPAM_LDAP_ID_ATTRIBUTE)",
        attribute,
        ldap_user.dn,
    )
    text = gettext(
        "The directory did not send the attribute %(attribute)s, by which your account is recognized. Ask an"
        " administrator: the log of this site has the details."
    )
    raise SignInRefused("ldap_id_missing", text % {"attribute": attribute})


def _created_at(ldap_user: Any) -> datetime | None:
    """Return when the entry was created, None if the directory does not say so."""
    text = _attribute(ldap_user, "createTimestamp")[
        :14
    ]  # Active Directory adds fractions of a second
    try:
        return datetime.strptime(f"{text}Z", "%Y%m%d%H%M%S%z")
    except ValueError:
        return None


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
