"""Credentials at rest: encrypted with a ring of keys, and bound to what they belong to.

A sealed text is `v1.<key>.<token>`: the name of the key that sealed it (the beginning of a hash, so
that a missing key can be told from a damaged text, and old ones counted), and a Fernet token over the
owner's text and the secret. The owner is checked when it is opened: a row's secret that was copied to
another row opens nowhere.

The first key of the ring seals; all of them open. To rotate: put a new key in front, `reseal` all
rows, take the old key away.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Sequence

from cryptography import fernet
from django.conf import settings

from pools.platform.outbound import faults

_SEALED = re.compile(r"v1\.([0-9a-f]{8})\.([A-Za-z0-9_=-]+)")
_KEY = re.compile(r"[A-Za-z0-9_-]{43}")


class KeyRing:
    """Keys, the newest first; each is 32 random bytes in base64 (`openssl rand -base64 32`)."""

    def __init__(self, keys: Sequence[str]) -> None:
        """Raises KeyRingInvalid, which names a key by its place only."""
        if not keys:
            raise faults.KeyRingInvalid(
                "there is no key for credentials: set IPAM_KEY_RING to the output of"
                " `openssl rand -base64 32`, and keep it as safe as the database's backups"
            )
        raw = [_decoded(key, place) for place, key in enumerate(keys, start=1)]
        # Equal keys are one key; the order counts.
        self._keys = {_name(key): fernet.Fernet(base64.urlsafe_b64encode(key)) for key in raw}
        self.newest = _name(raw[0])

    def __repr__(self) -> str:
        return f"KeyRing({', '.join(self._keys)})"

    def seal(self, secret: bytes, *, owner: str) -> str:
        """The secret as text for a column; `owner` says what it belongs to (`cluster:7`)."""
        token = self._keys[self.newest].encrypt(_bound(owner) + secret)
        return f"v1.{self.newest}.{token.decode()}"

    def open(self, sealed: str, *, owner: str) -> bytes:
        """Raises KeyMissing, SecretForeign (another owner's), SecretUnreadable (damaged)."""
        name, token = _parts(sealed)
        key = self._keys.get(name)
        if key is None:
            known = ", ".join(self._keys)
            raise faults.KeyMissing(f"the key {name} is not in the key ring, which has {known}")
        try:
            plain = key.decrypt(token.encode())
        except fernet.InvalidToken:
            raise faults.SecretUnreadable("the stored credential is damaged") from None
        bound = _bound(owner)
        if not plain.startswith(bound):
            raise faults.SecretForeign(f"the stored credential is not that of {owner}")
        return plain[len(bound) :]

    def reseal(self, sealed: str, *, owner: str) -> str:
        """The same secret under the newest key; the same text when it is already. Errors of open."""
        secret = self.open(sealed, owner=owner)
        return sealed if key_name(sealed) == self.newest else self.seal(secret, owner=owner)


def configured() -> KeyRing:
    """The ring of the settings. Raises KeyRingInvalid."""
    return KeyRing(settings.IPAM_KEY_RING)


def key_name(sealed: str) -> str:
    """The name of the key that sealed a text. Raises SecretUnreadable."""
    return _parts(sealed)[0]


def _parts(sealed: str) -> tuple[str, str]:
    found = _SEALED.fullmatch(sealed)
    if not found:
        raise faults.SecretUnreadable("the stored credential is damaged")
    return found[1], found[2]


def _bound(owner: str) -> bytes:
    # A hash, so that no owner's text can be the beginning of another's.
    return hashlib.sha256(owner.encode()).digest()


def _decoded(key: str, place: int) -> bytes:
    text = key.strip().rstrip("=").replace("+", "-").replace("/", "_")
    raw = b""
    if _KEY.fullmatch(text):
        try:
            raw = base64.urlsafe_b64decode(text + "=")
        except binascii.Error:
            raw = b""
    if len(raw) != 32:
        raise faults.KeyRingInvalid(f"key {place} of the key ring is not 32 bytes in base64")
    return raw


def _name(key: bytes) -> str:
    return hashlib.sha256(b"cadastre key name" + key).hexdigest()[:8]
