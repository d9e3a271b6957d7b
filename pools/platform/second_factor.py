"""The second factor of accounts of this site: who must have one, its removal, and how its secrets are stored.

django-allauth enrols and verifies it: authenticator app, passkeys and recovery codes are rows of its model
Authenticator. The accounts of a directory have theirs at the directory.
"""

from typing import Any

from allauth.mfa.models import Authenticator
from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.db import transaction

from pools.platform import events
from pools.platform.outbound import faults, secrets

# Each of these permissions makes an administrator.
_ADMINISTRATORS = ("auth.change_user", "pools.change_connection", "pools.force_release")
_OWNER = "second-factor"
# Where a row has its sealed secret.
_SECRETS = {Authenticator.Type.TOTP: "secret", Authenticator.Type.RECOVERY_CODES: "seed"}


def is_of_directory(user: User) -> bool:
    return hasattr(user, "directory_account")


def is_possible(user: User) -> bool:
    """Return True if the user signs in with a password of this site."""
    return user.has_usable_password() and not is_of_directory(user)


def is_required(user: User | AnonymousUser) -> bool:
    """Return True if the settings require a second factor of the user."""
    if settings.IPAM_SECOND_FACTOR == "administrators":
        return any(user.has_perm(permission) for permission in _ADMINISTRATORS)
    return bool(settings.IPAM_SECOND_FACTOR == "everybody")


def is_enrolled(user: User) -> bool:
    return bool(shown_by(user)) and not is_of_directory(user)


def shown_by(user: User) -> list[int]:
    """Return the ids of what the user may show: the app, each passkey, the recovery codes."""
    return list(Authenticator.objects.filter(user_id=user.pk).values_list("pk", flat=True))


def remove(user: User, *, author: events.Author) -> bool:
    """Remove app, passkeys and recovery codes of the user; False if there are none."""
    with events.recorded_by(author):
        return Authenticator.objects.filter(user_id=user.pk).delete()[0] > 0


def seal(text: str) -> str:
    return secrets.key_ring().seal(text.encode(), owner=_OWNER)


def unseal(sealed: str) -> str:
    """Return the text that `seal` was given. Raises SecretUnreadable."""
    return secrets.key_ring().open(sealed, owner=_OWNER).decode()


def reseal() -> secrets.ResealResult:
    """Seal all secrets with the newest key of the ring. Raises KeyRingInvalid."""
    ring, result = secrets.key_ring(), secrets.ResealResult()
    for pk in Authenticator.objects.filter(type__in=_SECRETS).values_list("pk", flat=True):
        with transaction.atomic():
            rows: Any = Authenticator.objects.select_for_update(of=("self",))
            row = rows.select_related("user").filter(pk=pk).first()
            if row is None:
                continue
            key = _SECRETS[row.type]
            try:
                sealed = ring.reseal(row.data[key], owner=_OWNER)
            except faults.SecretUnreadable as error:
                result.failed[row.user.get_username()] = error.code
                continue
            if sealed == row.data[key]:
                result.already += 1
                continue
            row.data[key] = sealed
            row.save(update_fields=["data"])
            result.resealed += 1
    return result
