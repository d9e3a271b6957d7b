"""`Authorization: Token …` (django-rest-knox's tokens), and the session of the admin.

One round trip answers who the token belongs to and what that user may do. Knox's own class needs
three, deletes expired tokens while it reads them, and answers 500 to a token that is not UTF-8.
"""

from __future__ import annotations

import hmac
import json
import logging
import re
import time
from datetime import UTC, datetime
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractUser
from django.db import DatabaseError, InterfaceError, OperationalError, connection, transaction
from knox import crypto
from knox.models import AuthToken
from knox.settings import CONSTANTS
from rest_framework import authentication, exceptions
from rest_framework.request import Request

from pools.platform import prepared

KEYWORD = "Token"
NOTE_USE_EVERY = 600  # seconds
# Knox's are 64 characters and a short prefix.
_PRINTABLE = re.compile(rb"[!-~]{1,200}")

log = logging.getLogger(__name__)


class TokenAuthentication(authentication.BaseAuthentication):
    """The user of a token that has not expired; 401 for anything else."""

    def authenticate(self, request: Request) -> tuple[AbstractUser, AuthToken] | None:
        header = authentication.get_authorization_header(request).split()
        if not header or header[0].lower() != KEYWORD.lower().encode():
            return None
        if len(header) != 2 or not _PRINTABLE.fullmatch(header[1]):
            raise exceptions.AuthenticationFailed("Write it as: Authorization: Token <token>.")
        return _owner(header[1].decode())

    def authenticate_header(self, request: Request) -> str:
        return KEYWORD


class SessionAuthentication(authentication.SessionAuthentication):
    """The admin's login; unsafe methods need its CSRF token."""

    def enforce_csrf(self, request: Request) -> None:
        # The check looks for a form's field: on REST framework's request that parses the body and
        # leaves nothing of it to read, on Django's own it does so for forms only.
        super().enforce_csrf(getattr(request, "_request", request))


def _owner(token: str) -> tuple[AbstractUser, AuthToken]:
    digest = crypto.hash_token(token)
    # Several tokens may share the part that they are looked up by.
    for kept, expiry, permissions, *columns in _tokens(token[: CONSTANTS.TOKEN_KEY_LENGTH]):
        until = None if expiry is None else datetime.fromtimestamp(expiry, UTC)
        if not hmac.compare_digest(digest, kept) or _is_over(until):
            continue
        user: Any = get_user_model().from_db(connection.alias, _FIELDS, columns)
        if not user.is_active:
            raise exceptions.AuthenticationFailed("The user of this token is not active.")
        # Where Django's ModelBackend keeps what it read itself.
        user._perm_cache = set(permissions)
        _note_use(kept)
        return user, AuthToken(digest=kept, expiry=until, user=user)
    raise exceptions.AuthenticationFailed("The token is not valid.")


_USES_KEPT = 1000
_last_noted: dict[str, float] = {}  # by digest: when this process wrote that the token is used


def _note_use(digest: str) -> None:
    """Write down that a token is used, now and then: most requests cost nothing."""
    now = time.monotonic()
    if now - _last_noted.get(digest, -NOTE_USE_EVERY) < NOTE_USE_EVERY:
        return
    if len(_last_noted) >= _USES_KEPT:
        _last_noted.clear()
    _last_noted[digest] = now
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO pools_tokenuse (token_id, used_at) VALUES (%s, ipam_now())"
                " ON CONFLICT (token_id) DO UPDATE SET used_at = EXCLUDED.used_at",
                [digest],
            )
    except DatabaseError as error:  # a standby, or the token was revoked at this moment
        log.info("the use of a token was not noted: %s", type(error).__name__)


def _is_over(expiry: datetime | None) -> bool:
    # A token's end was set by the clock of a web process: the same kind of clock judges it.
    return expiry is not None and expiry <= datetime.now(UTC)


# What requests ask of a user, in the order of the model, as Model.from_db wants it; the rest is deferred.
_ASKED = {"id", "username", "is_active", "is_staff", "is_superuser"}
_FIELDS = [
    field.attname for field in get_user_model()._meta.concrete_fields if field.attname in _ASKED
]
_COLUMNS = ", ".join(f'u."{field}"' for field in _FIELDS)

# A token, its user, and the user's own and groups' permissions; a superuser needs none.
_OWNER = f"""
    SELECT COALESCE(json_agg(json_build_array(
      t.digest, extract(epoch FROM t.expiry), CASE WHEN u.is_superuser THEN '{{}}' ELSE ARRAY(
        SELECT c.app_label || '.' || p.codename
        FROM auth_permission p JOIN django_content_type c ON c.id = p.content_type_id
        WHERE p.id IN (
            SELECT permission_id FROM auth_user_user_permissions WHERE user_id = u.id
            UNION ALL
            SELECT g.permission_id FROM auth_group_permissions g
            JOIN auth_user_groups ug ON ug.group_id = g.group_id WHERE ug.user_id = u.id)
      ) END, {_COLUMNS})), '[]')::text
    FROM knox_authtoken t JOIN auth_user u ON u.id = t.user_id WHERE t.token_key = $1
"""  # noqa: S608  # no value is formatted in


def _tokens(key: str) -> list[list[Any]]:
    """What is known of the tokens that begin with the key: digest, expiry in seconds, permissions, user.

    Reading is harmless to repeat, so a connection that the server closed meanwhile is noticed
    here, and not by a round trip of its own before each request (CONN_HEALTH_CHECKS).
    """
    is_kept = connection.connection is not None and not connection.in_atomic_block
    connection.health_check_done = True  # type: ignore[attr-defined]  # not in the stubs
    try:
        return _read(key)
    except (OperationalError, InterfaceError):
        if not is_kept:
            raise
        connection.close()
        return _read(key)


def _read(key: str) -> list[list[Any]]:
    found: list[list[Any]] = json.loads(prepared.text(_OWNER, [key]))
    return found
