"""How often somebody may try to sign in: by account name, and by the address that it comes from.

An attempt is counted before its password is looked at, in one statement, so that attempts at the same
time are not more than the limit either, and one above the limit costs no hash of a password. Names of
accounts that do not exist count alike: nobody learns which ones do.
"""

from __future__ import annotations

import ipaddress
import logging
import math
from dataclasses import dataclass

from django.conf import settings
from django.utils import crypto

from pools.models import LoginFailures
from pools.platform import database
from pools.sql import statements

WINDOW = 900  # seconds
_SALT = "pools.login_limits"

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Attempt:
    """An attempt that was counted; `retry_after` are the seconds to wait, 0 when it is allowed."""

    account: str
    address: str
    retry_after: int


def count(name: str, address: str) -> Attempt:
    """Count an attempt before it is made."""
    account, source = _key("account", name.casefold()), _key("address", _network(address))
    rows = database.rows(_COUNT, {"keys": sorted({account, source}), "window": WINDOW})
    limits = {
        account: settings.IPAM_LOGIN_FAILURES_PER_ACCOUNT,
        source: settings.IPAM_LOGIN_FAILURES_PER_ADDRESS,
    }
    waits = [left for key, failures, left in rows if failures > limits[key]]
    if waits:
        log.warning("a sign-in from %s was refused: too many have failed", address)
    return Attempt(account, source, math.ceil(max(waits, default=0)))


def succeeded(attempt: Attempt) -> None:
    """The account's failures are forgotten; of the address's only this attempt, which was none."""
    LoginFailures.objects.filter(key=attempt.account).delete()
    database.rows(_TAKE_BACK, [attempt.address])


def tidy() -> int:
    """Delete what no limit counts any more."""
    return len(database.rows(_TIDY, [WINDOW]))


def _key(kind: str, value: str) -> str:
    return crypto.salted_hmac(f"{_SALT}.{kind}", value, algorithm="sha256").hexdigest()


def _network(address: str) -> str:
    """An IPv6 host has a /64 of addresses to try from."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address):
        return str(parsed.ipv4_mapped or ipaddress.ip_network((parsed, 64), strict=False))
    return address


# Locks rows in one order, so that no two attempts wait for each other.
_COUNT = statements.read("pools/count_login_failure")
_TAKE_BACK = """
    UPDATE pools_loginfailures SET failures = GREATEST(failures - 1, 0) WHERE key = %s RETURNING key
"""
_TIDY = """
    DELETE FROM pools_loginfailures WHERE since < ipam_clock() - make_interval(secs => %s)
    RETURNING key
"""
