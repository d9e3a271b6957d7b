"""A software authenticator: makes passkeys and signs, as a browser would pass it on, and wrongly on demand."""

import base64
import hashlib
import json
import secrets
import struct
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from fido2 import cbor

UP, UV, AT = 0x01, 0x04, 0x40


def encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


@dataclass
class Authenticator:
    """One key. `count` is the counter of the next signature; attributes may be changed to wrong ones."""

    origin: str = "http://localhost"
    rp_id: str = "localhost"
    flags: int = UP | UV
    count: int = 1
    cross_origin: bool = False
    handle: bytes = b""
    credential_id: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    key: Any = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    algorithm: int = -7

    def create(self, options: dict[str, Any], **client_data: Any) -> dict[str, Any]:
        """Answer to navigator.credentials.create(), as toJSON() says it."""
        handle = options["user"]["id"]
        self.handle = base64.urlsafe_b64decode(handle + "=" * (-len(handle) % 4))
        numbers = self.key.public_key().public_numbers()
        public_key = {
            1: 2, 3: self.algorithm, -1: 1, -2: numbers.x.to_bytes(32, "big"),
            -3: numbers.y.to_bytes(32, "big"),
        }  # fmt: skip
        attested = bytes(16) + struct.pack(">H", len(self.credential_id)) + self.credential_id
        data = self._data(self.flags | AT) + attested + cbor.encode(public_key)
        document = {"fmt": "none", "attStmt": {}, "authData": data}
        return self._answer(
            clientDataJSON=self._client_data("webauthn.create", options, client_data),
            attestationObject=cbor.encode(document),
        )

    def get(self, options: dict[str, Any], **client_data: Any) -> dict[str, Any]:
        """Answer to navigator.credentials.get()."""
        data = self._data(self.flags)
        signed = self._client_data("webauthn.get", options, client_data)
        signature = self.key.sign(data + hashlib.sha256(signed).digest(), ec.ECDSA(hashes.SHA256()))
        return self._answer(
            clientDataJSON=signed,
            authenticatorData=data,
            signature=signature,
            userHandle=self.handle,
        )

    def _data(self, flags: int) -> bytes:
        data = hashlib.sha256(self.rp_id.encode()).digest() + struct.pack(">BI", flags, self.count)
        self.count += 1 if self.count else 0
        return data

    def _client_data(self, kind: str, options: dict[str, Any], changes: dict[str, Any]) -> bytes:
        values = {
            "type": kind,
            "challenge": options["challenge"],
            "origin": self.origin,
            "crossOrigin": self.cross_origin,
            **changes,
        }
        return json.dumps(values).encode()

    def _answer(self, **response: bytes) -> dict[str, Any]:
        return {
            "id": encode(self.credential_id),
            "rawId": encode(self.credential_id),
            "type": "public-key",
            "authenticatorAttachment": "platform",
            "clientExtensionResults": {},
            "response": {name: encode(value) for name, value in response.items()},
        }
