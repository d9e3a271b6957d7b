"""The second factor of accounts of this site: codes of an authenticator app (TOTP), and recovery codes.

Passkeys are in pools/platform/passkeys.py. The accounts of a directory have theirs at the directory.
"""

from __future__ import annotations

import base64
import hashlib
import logging
import re
import secrets as randomness
import time
import uuid
from dataclasses import dataclass
from typing import Any, cast
from urllib import parse

from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django_otp import oath

from pools.models import DirectoryAccount, Passkey, SecondFactor
from pools.platform import events
from pools.platform.outbound import faults, secrets

RECOVERY_CODES = 10
_ISSUER = "Cadastre"
_STEPS_AROUND = 1  # codes of the step before and after are accepted: clocks differ
_APP_CODE = re.compile(r"[0-9]{6}")
# Each of these permissions makes an administrator.
_ADMINISTRATORS = ("auth.change_user", "pools.change_connection", "pools.force_release")

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Proof:
    """The factor that an account has shown, and the passkey that signed, None after a code."""

    factor: SecondFactor
    passkey: Passkey | None = None


def is_possible(user: User) -> bool:
    """Return True if the user signs in with a password of this site."""
    return user.has_usable_password() and not hasattr(user, "directory_account")


def is_required(user: User | AnonymousUser) -> bool:
    """Return True if the settings require a second factor of the user."""
    if settings.IPAM_SECOND_FACTOR == "administrators":
        return any(user.has_perm(permission) for permission in _ADMINISTRATORS)
    return bool(settings.IPAM_SECOND_FACTOR == "everybody")


def is_enrolled(user: User) -> bool:
    return SecondFactor.objects.filter(user_id=user.pk).exists()


def new_secret(user: User) -> str:
    """Return a new secret for an app of the user, sealed."""
    return secrets.key_ring().seal(randomness.token_bytes(20), owner=_owner(user.pk))


def secret_text(user: User, sealed: str) -> str:
    """Return the secret as people type it into an app."""
    return base64.b32encode(_open(user.pk, sealed)).decode()


def app_url(user: User, sealed: str) -> str:
    """Return the URL that an app reads from a QR code."""
    label = parse.quote(f"{_ISSUER}:{user.get_username()}")
    query = parse.urlencode({"secret": secret_text(user, sealed), "issuer": _ISSUER})
    return f"otpauth://totp/{label}?{query}"


def enrol(
    user: User, sealed: str, code: str, *, author: events.Author
) -> tuple[SecondFactor, list[str]] | None:
    """Store the secret if the code is one of it; return the factor, and its recovery codes if it is new.

    Returns None if the code is wrong, or the user has an app already, or an account of a directory.
    """
    step = _matching_step(_open(user.pk, sealed), _plain(code), after=-1)
    if step is None:
        return None
    with events.recorded_by(author):
        enrolment = lock_or_create(user)
        if enrolment is None or enrolment[0].sealed:
            return None
        factor, codes = enrolment
        factor.sealed, factor.last_step = sealed, step
        factor.save(update_fields=["sealed", "last_step"])
    return factor, codes


def lock_or_create(
    user: User, handle: uuid.UUID | None = None
) -> tuple[SecondFactor, list[str]] | None:
    """Return the locked factor of the user; a new one with its recovery codes, which are stored as digests only.

    Returns None for an account of a directory. Call it inside a transaction.
    """
    if DirectoryAccount.objects.filter(user_id=user.pk).exists():
        return None
    codes = [_new_recovery_code() for _ in range(RECOVERY_CODES)]
    factor, is_new = SecondFactor.objects.select_for_update().get_or_create(
        user=user,
        defaults={
            "recovery_digests": [_digest(user.pk, _plain(code)) for code in codes],
            "handle": handle or uuid.uuid4(),
        },
    )
    return factor, codes if is_new else []


def verify(user: User, code: str, *, author: events.Author) -> SecondFactor | None:
    """Return the factor of the user if the code is right; this uses up the code.

    Wrong codes delay the next one, by django-otp.
    """
    with events.recorded_by(author):
        rows = SecondFactor.objects.select_for_update().filter(user_id=user.pk)
        factor: Any = rows.first()  # django-otp has no types
        if factor is None or not factor.verify_is_allowed()[0]:
            return None
        if not _use_up(factor, _plain(code)):
            factor.throttle_increment()
            return None
        factor.throttle_reset(commit=False)
        factor.save()
        return cast("SecondFactor", factor)


def remove(user: User, *, author: events.Author) -> bool:
    """Remove the factor of the user with its passkeys; False if there is none."""
    with events.recorded_by(author):
        # First the factor, whose lock whoever adds a passkey holds.
        is_removed = SecondFactor.objects.filter(user_id=user.pk).delete()[0] > 0
        Passkey.objects.filter(user_id=user.pk).delete()
        return is_removed


def reseal() -> secrets.ResealResult:
    """Seal all secrets with the newest key of the ring. Raises KeyRingInvalid."""
    rows = SecondFactor.objects.exclude(sealed="").select_related("user")
    return secrets.reseal(
        rows, lambda row: _owner(row.user_id), lambda row: row.user.get_username()
    )


def _use_up(factor: SecondFactor, code: str) -> bool:
    """Change the factor so that the code is not accepted again; False if it is wrong."""
    if _APP_CODE.fullmatch(code):
        if not factor.sealed:
            return False
        try:
            secret = _open(factor.user_id, factor.sealed)
        except faults.SecretUnreadable as error:  # recovery codes are accepted nevertheless
            log.error("the second factor of user %s cannot be read: %s", factor.user_id, error.code)  # noqa: TRY400
            return False
        step = _matching_step(secret, code, after=factor.last_step)
        if step is None:
            return False
        factor.last_step = step
        return True
    digest = _digest(factor.user_id, code)
    if digest not in factor.recovery_digests:
        return False
    factor.recovery_digests.remove(digest)
    return True


def _matching_step(secret: bytes, code: str, *, after: int) -> int | None:
    """Return the time step of a code of the app that is later than `after`."""
    if not _APP_CODE.fullmatch(code):
        return None
    totp = oath.TOTP(secret)
    totp.time = time.time()
    matches = totp.verify(int(code), tolerance=_STEPS_AROUND, min_t=after + 1)
    return int(totp.t()) if matches else None


def _new_recovery_code() -> str:
    """Return 80 random bits, which no digest has to be slow for."""
    text = base64.b32encode(randomness.token_bytes(10)).decode().lower()
    return "-".join(text[start : start + 4] for start in range(0, 16, 4))


def _plain(code: str) -> str:
    """Return a code as people may type it, without spaces and hyphens."""
    return re.sub(r"[\s-]", "", code).lower()


def _digest(user_id: int, code: str) -> str:
    return hashlib.sha256(f"{user_id}:{code}".encode()).hexdigest()


def _open(user_id: int, sealed: str) -> bytes:
    return secrets.key_ring().open(sealed, owner=_owner(user_id))


def _owner(user_id: int) -> str:
    return f"second-factor:{user_id}"
