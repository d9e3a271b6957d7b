"""Authentication by `Authorization: Bearer …` (tokens of django-rest-knox), or by the session of the admin.

One round trip returns the user of the token with the user's permissions. Knox's own class needs three,
deletes expired tokens while it reads them, and answers 500 to a token that is not UTF-8.
"""

import hmac
import json
import logging
import re
import time
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractUser
from django.db import DatabaseError, InterfaceError, OperationalError, connection, transaction
from django.http import HttpRequest
from knox import crypto
from knox.models import AuthToken
from knox.settings import CONSTANTS
from rest_framework import authentication, exceptions
from rest_framework.request import Request

from pools.models import TokenLevel
from pools.platform import database, login_limits
from pools.platform.rest import token_scopes

SCHEMES = (b"bearer", b"token")
CHALLENGE = "Bearer"
# Browsers send these by themselves to a proxy in front of the site: they are no token of ours.
_SCHEMES_OF_BROWSERS = (b"basic", b"digest", b"negotiate", b"ntlm")
NOTE_USE_EVERY = 600  # seconds between two records of the use of a token
# A token of Knox has 64 characters and a short prefix.
_WITH_PORT = re.compile(r"(?P<v4>[0-9.]+):[0-9]+|\[(?P<v6>[0-9a-fA-F:.]+)\](:[0-9]+)?")
_PRINTABLE = re.compile(rb"[!-~]{1,200}")

log = logging.getLogger(__name__)


class TokenAuthentication(authentication.BaseAuthentication):
    """Authenticates the user of a token that has not expired; 401 for any other token, 429 for too many of them."""

    def authenticate(self, request: Request) -> tuple[AbstractUser, AuthToken] | None:
        token = parse_header(request)
        if token is None:
            return None
        try:
            return _owner(token)
        except exceptions.AuthenticationFailed as failure:
            slow_down(request, failure)
            raise

    def authenticate_header(self, request: Request) -> str:
        return CHALLENGE


def slow_down(request: HttpRequest | Request, failure: Exception) -> None:
    """Count a wrong token, or key, of the client's address; raise Throttled above the limit."""
    if wait := _count_wrong_token(request):
        message = "Too many requests from this address have had a wrong token."
        raise exceptions.Throttled(wait, message) from failure


def _count_wrong_token(request: HttpRequest | Request) -> int:
    """Return the seconds to wait, 0 below the limit."""
    try:
        return login_limits.count_wrong_token(client_address(request))
    except (DatabaseError, InterfaceError) as error:  # a standby counts nothing
        log.info("a wrong token was not counted: %s", type(error).__name__)
        return 0


def client_address(request: HttpRequest | Request) -> str:
    """Return the client's address; behind a proxy it is the last one of X-Forwarded-For.

    Some proxies write the client's port after it, which is another one for each connection.
    """
    last = request.META.get("HTTP_X_FORWARDED_FOR", "").rpartition(",")[2].strip()
    if match := _WITH_PORT.fullmatch(last):
        last = match["v4"] or match["v6"]
    peer = str(request.META.get("REMOTE_ADDR", "")).removeprefix(
        "::ffff:"
    )  # IPv4 by an IPv6 socket
    return last if settings.IPAM_BEHIND_PROXY and last else peer


def parse_header(request: HttpRequest | Request) -> str | None:
    """Return the token of a request, None without one.

    Raises AuthenticationFailed for any other header, such as a token without its scheme: a request that presents
    a token never gets the rights of a session instead.
    """
    header = authentication.get_authorization_header(request).split()  # type: ignore[arg-type]  # reads META only
    if not header or header[0].lower() in _SCHEMES_OF_BROWSERS:
        return None
    if len(header) != 2 or header[0].lower() not in SCHEMES or not _PRINTABLE.fullmatch(header[1]):
        raise exceptions.AuthenticationFailed("Write it as: Authorization: Bearer <token>.")
    return header[1].decode()


class SessionAuthentication(authentication.SessionAuthentication):
    """Authenticates by the session of the admin; unsafe methods need its CSRF token."""

    def enforce_csrf(self, request: Request) -> None:
        # The check reads a form field. On REST framework's request this would parse and consume the
        # body; Django's own request parses only forms.
        super().enforce_csrf(getattr(request, "_request", request))


def _owner(token: str) -> tuple[AbstractUser, AuthToken]:
    digest = crypto.hash_token(token)
    # Several tokens may share the prefix that they are looked up by.
    for stored_digest, expiry, permissions, scope, *columns in _tokens(
        token[: CONSTANTS.TOKEN_KEY_LENGTH]
    ):
        expires_at = None if expiry is None else datetime.fromtimestamp(expiry, UTC)
        if not hmac.compare_digest(digest, stored_digest) or _is_expired(expires_at):
            continue
        user: Any = get_user_model().from_db(connection.alias, _FIELDS, columns)
        if not user.is_active:
            raise exceptions.AuthenticationFailed("The user of this token is not active.")
        auth_token: Any = AuthToken(digest=stored_digest, expiry=expires_at, user=user)
        # The cache in which Django's ModelBackend stores the permissions that it reads.
        user._perm_cache = set(permissions)
        if scope is not None:
            level, *limit = scope
            auth_token.limits = token_scopes.Limits(TokenLevel(level), *limit)
            user._perm_cache = auth_token.limits.usable_permissions(permissions)
            user.usable_permissions = auth_token.limits.usable_permissions  # of other backends
            auth_token.withheld = {*permissions} - user._perm_cache
            user.is_superuser = False  # else every check of a permission would succeed
        record_use(stored_digest)
        return user, auth_token
    raise exceptions.AuthenticationFailed("The token is not valid.")


_USES_KEPT = 1000
_last_recorded: dict[
    str, float
] = {}  # by digest: when this process last recorded a use of the token


def record_use(digest: str) -> None:
    """Record that a token is used, at most every NOTE_USE_EVERY seconds."""
    now = time.monotonic()
    if now - _last_recorded.get(digest, -NOTE_USE_EVERY) < NOTE_USE_EVERY:
        return
    if len(_last_recorded) >= _USES_KEPT:
        _last_recorded.clear()
    _last_recorded[digest] = now
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(_RECORD_USE, {"token": digest, "seconds": NOTE_USE_EVERY})
    except (DatabaseError, InterfaceError) as error:  # a standby, or the token was just revoked
        log.info("the use of a token was not recorded: %s", type(error).__name__)


# Another process may have recorded a use; and with very many tokens this one has forgotten its own.
_RECORD_USE = """
    INSERT INTO pools_tokenuse (token_id, used_at) SELECT %(token)s, ipam_now()
    WHERE NOT EXISTS (SELECT FROM pools_tokenuse WHERE token_id = %(token)s
        AND used_at > ipam_now() - make_interval(secs => %(seconds)s))
    ON CONFLICT (token_id) DO UPDATE SET used_at = EXCLUDED.used_at
"""


def _is_expired(expiry: datetime | None) -> bool:
    # The clock of a web process set the expiry, so the clock of a web process is compared with it.
    return expiry is not None and expiry <= datetime.now(UTC)


# The fields of a user that requests need, in the model's order for Model.from_db; others are deferred.
_LOADED_FIELDS = {"id", "username", "is_active", "is_staff", "is_superuser"}
_FIELDS = [
    field.attname
    for field in get_user_model()._meta.concrete_fields
    if field.attname in _LOADED_FIELDS
]
_COLUMNS = ", ".join(f'u."{field}"' for field in _FIELDS)

# A token, its user, the permissions of the user and the user's groups, and the token's limits. A superuser
# needs no permissions, unless the token is limited to some of them.
_OWNER = f"""
    SELECT COALESCE(json_agg(json_build_array(
      t.digest, extract(epoch FROM t.expiry), CASE WHEN u.is_superuser AND s.token_id IS NULL THEN '{{}}' ELSE ARRAY(
        SELECT c.app_label || '.' || p.codename
        FROM auth_permission p JOIN django_content_type c ON c.id = p.content_type_id
        WHERE u.is_superuser OR p.id IN (
            SELECT permission_id FROM auth_user_user_permissions WHERE user_id = u.id
            UNION ALL
            SELECT g.permission_id FROM auth_group_permissions g
            JOIN auth_user_groups ug ON ug.group_id = g.group_id WHERE ug.user_id = u.id)
      ) END, CASE WHEN s.token_id IS NOT NULL THEN json_build_array(s.level, s.cluster_id, s.pool_id) END,
      {_COLUMNS})), '[]')::text
    FROM knox_authtoken t JOIN auth_user u ON u.id = t.user_id
    LEFT JOIN pools_tokenscope s ON s.token_id = t.digest
        AND (s.level <> 'administer' OR num_nonnulls(s.cluster_id, s.pool_id) > 0)
    WHERE t.token_key = %s
"""  # noqa: S608  # no value is formatted in


def _tokens(key: str) -> list[list[Any]]:
    """Return [digest, expiry in seconds, permissions, limits or None, *user columns] of the tokens with a prefix.

    The query is harmless to repeat: if the server has closed the connection, it is repeated on a new one,
    instead of checking the connection before each request (CONN_HEALTH_CHECKS).
    """
    is_reused = connection.connection is not None and not connection.in_atomic_block
    connection.health_check_done = True  # type: ignore[attr-defined]  # not in the stubs
    try:
        return _read(key)
    except (OperationalError, InterfaceError):
        if not is_reused:
            raise
        connection.close()
        return _read(key)


def _read(key: str) -> list[list[Any]]:
    rows: list[list[Any]] = json.loads(database.call(_OWNER, [key]))
    return rows
