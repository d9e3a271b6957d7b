"""Credentials at rest: encrypted with a ring of keys, and bound to their owner.

A sealed text is `v1.<key>.<token>`. `<key>` names the key that sealed it (the beginning of a hash), so that a
missing key can be distinguished from a damaged text, and texts under old keys can be counted. `<token>` is a
Fernet token over the owner and the secret. Opening checks the owner: a secret that was copied to another row
cannot be opened there.

The first key of the ring seals; all of them open. To rotate keys: put a new key first, `reseal` all rows, and
remove the old key.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from cryptography import fernet
from django.conf import settings
from django.db.models import QuerySet

from pools.platform.outbound import faults

_SEALED = re.compile(r"v1\.([0-9a-f]{8})\.([A-Za-z0-9_=-]+)")
_KEY = re.compile(r"[A-Za-z0-9_-]{43}")


@dataclass
class ResealResult:
    """How many secrets are sealed with the newest key; error codes of those that could not be opened."""

    resealed: int = 0
    already: int = 0
    failed: dict[str, str] = field(default_factory=dict)  # by the owner's name


class KeyRing:
    """Keys, newest first; each is 32 random bytes in base64 (`openssl rand -base64 32`)."""

    def __init__(self, keys: Sequence[str]) -> None:
        """Raise KeyRingInvalid for bad keys; the message identifies a key only by its position."""
        if not keys:
            raise faults.KeyRingInvalid(
                "there is no key for credentials: set IPAM_KEY_RING to the output of"
                " `openssl rand -base64 32`, and keep it as safe as the database's backups"
            )
        raw = [_decoded(key, position) for position, key in enumerate(keys, start=1)]
        # Duplicate keys count once; the first key is the newest.
        self._keys = {_name(key): fernet.Fernet(base64.urlsafe_b64encode(key)) for key in raw}
        self.newest = _name(raw[0])

    def __repr__(self) -> str:
        return f"KeyRing({', '.join(self._keys)})"

    def seal(self, secret: bytes, *, owner: str) -> str:
        """Return the sealed secret as text; `owner` is the object that it belongs to (`cluster:7`)."""
        token = self._keys[self.newest].encrypt(_bound(owner) + secret)
        return f"v1.{self.newest}.{token.decode()}"

    def open(self, sealed: str, *, owner: str) -> bytes:
        """Open a secret. Raises KeyMissing, SecretForeign (another owner), SecretUnreadable (damaged)."""
        name, token = _parts(sealed)
        key = self._keys.get(name)
        if key is None:
            key_names = ", ".join(self._keys)
            raise faults.KeyMissing(f"the key {name} is not in the key ring, which has {key_names}")
        try:
            plain = key.decrypt(token.encode())
        except fernet.InvalidToken:
            raise faults.SecretUnreadable("the stored credential is damaged") from None
        bound = _bound(owner)
        if not plain.startswith(bound):
            raise faults.SecretForeign(f"the stored credential is not that of {owner}")
        return plain[len(bound) :]

    def reseal(self, sealed: str, *, owner: str) -> str:
        """Return the text sealed with the newest key, unchanged if it is already. Raises as `open`."""
        secret = self.open(sealed, owner=owner)
        return sealed if key_name(sealed) == self.newest else self.seal(secret, owner=owner)


def key_ring() -> KeyRing:
    """Return the key ring of the settings. Raises KeyRingInvalid."""
    return KeyRing(settings.IPAM_KEY_RING)


def reseal(
    rows: QuerySet[Any], owner: Callable[[Any], str], name: Callable[[Any], str]
) -> ResealResult:
    """Seal the texts in the column `sealed` of rows with the newest key of the ring.

    `owner` returns what the text of a row is bound to, `name` how the result names it. Raises KeyRingInvalid.
    """
    ring, result = key_ring(), ResealResult()
    for row in rows.order_by("pk"):
        try:
            sealed = ring.reseal(row.sealed, owner=owner(row))
        except faults.SecretUnreadable as error:
            result.failed[name(row)] = error.code
            continue
        if sealed == row.sealed:
            result.already += 1
        else:
            # A secret that was replaced meanwhile is sealed with the newest key already.
            type(row)._default_manager.filter(pk=row.pk, sealed=row.sealed).update(sealed=sealed)
            result.resealed += 1
    return result


def key_name(sealed: str) -> str:
    """Return the name of the key that sealed a text. Raises SecretUnreadable."""
    return _parts(sealed)[0]


def _parts(sealed: str) -> tuple[str, str]:
    match = _SEALED.fullmatch(sealed)
    if not match:
        raise faults.SecretUnreadable("the stored credential is damaged")
    return match[1], match[2]


def _bound(owner: str) -> bytes:
    # A hash, so that no owner can be a prefix of another one.
    return hashlib.sha256(owner.encode()).digest()


def _decoded(key: str, position: int) -> bytes:
    text = key.strip().rstrip("=").replace("+", "-").replace("/", "_")
    raw = b""
    if _KEY.fullmatch(text):
        try:
            raw = base64.urlsafe_b64decode(text + "=")
        except binascii.Error:
            raw = b""
    if len(raw) != 32:
        raise faults.KeyRingInvalid(f"key {position} of the key ring is not 32 bytes in base64")
    return raw


def _name(key: bytes) -> str:
    return hashlib.sha256(b"cadastre key name" + key).hexdigest()[:8]
