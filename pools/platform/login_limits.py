"""Limits of failed logins, by account name and by client address, and of wrong API tokens by address.

An attempt is counted before its password is checked, in one statement, so that concurrent attempts cannot
exceed the limit and an attempt above the limit costs no password hash. Attempts for accounts that do not exist
count too, so that the limit does not reveal which accounts exist.
"""

import ipaddress
import logging
import math
from dataclasses import dataclass

from django.conf import settings
from django.utils import crypto

from pools.models import LoginFailures
from pools.platform import database
from pools.sql import statements

WINDOW = 900  # seconds in which failures count
_SALT = "pools.login_limits"

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Attempt:
    """A counted attempt; `retry_after` is the number of seconds to wait, 0 if it is allowed."""

    account: str
    address: str
    retry_after: int


def count_attempt(name: str, address: str) -> Attempt:
    """Count an attempt before the password is checked."""
    account, source = _key("account", name.casefold()), _key("address", _network(address))
    rows = database.rows(_COUNT, {"keys": sorted({account, source}), "window": WINDOW})
    limits = {
        account: settings.IPAM_LOGIN_FAILURES_PER_ACCOUNT,
        source: settings.IPAM_LOGIN_FAILURES_PER_ADDRESS,
    }
    waits = [seconds_left for key, failures, seconds_left in rows if failures > limits[key]]
    if waits:
        log.warning("a login from %s was refused: too many failed attempts", address)
    return Attempt(account, source, math.ceil(max(waits, default=0)))


def count_wrong_token(address: str) -> int:
    """Count a request with a wrong token; return the seconds to wait, 0 below the limit.

    Right tokens are never counted, and are served also above the limit: others may share the address.
    """
    key = _key("token", _network(address))
    [(_, failures, seconds_left)] = database.rows(_COUNT, {"keys": [key], "window": WINDOW})
    if failures <= settings.IPAM_LOGIN_FAILURES_PER_ADDRESS:
        return 0
    if failures == settings.IPAM_LOGIN_FAILURES_PER_ADDRESS + 1:
        log.warning("requests from %s have had too many wrong tokens", address)
    return math.ceil(float(seconds_left))


def record_success(attempt: Attempt) -> None:
    """Delete the failures of the account, and this attempt from those of the address."""
    LoginFailures.objects.filter(key=attempt.account).delete()
    database.rows(_UNCOUNT, [attempt.address])


def record_password(attempt: Attempt) -> None:
    """Remove this attempt, and no other failure: its password was right, and its code is not known yet."""
    for key in (attempt.account, attempt.address):
        database.rows(_UNCOUNT, [key])


def tidy() -> int:
    """Delete failures outside the window."""
    return len(database.rows(_TIDY, [WINDOW]))


def _key(kind: str, value: str) -> str:
    return crypto.salted_hmac(f"{_SALT}.{kind}", value, algorithm="sha256").hexdigest()


def _network(address: str) -> str:
    """Return the network to count an address by: an IPv6 host can use any address of its /64."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address):
        return str(parsed.ipv4_mapped or ipaddress.ip_network((parsed, 64), strict=False))
    return address


# Locks the rows in one order, so that concurrent attempts do not deadlock.
_COUNT = statements.read("pools/count_login_failure")
_UNCOUNT = """
    UPDATE pools_loginfailures SET failures = GREATEST(failures - 1, 0) WHERE key = %s RETURNING key
"""
_TIDY = """
    DELETE FROM pools_loginfailures WHERE since < ipam_clock() - make_interval(secs => %s)
    RETURNING key
"""
