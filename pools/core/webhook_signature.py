"""Signatures by which receivers of webhooks verify the sender and the age of a message.

HMAC-SHA256 over `<timestamp>.<body>` with the target's secret (rule `messages-are-signed`);
docs/reference/alerts.md has the receiver's side.
"""

from __future__ import annotations

import hashlib
import hmac

TIMESTAMP = "X-Cadastre-Timestamp"  # Unix time at which this attempt was signed
SIGNATURE = "X-Cadastre-Signature"  # v1=<hex>
DELIVERY = "X-Cadastre-Delivery"  # the same for each attempt
VERSION = "v1"


def sign(secret: str, timestamp: int, body: bytes) -> str:
    """Return the value of the signature header: `v1=` and 64 hexadecimal digits."""
    signed = str(timestamp).encode() + b"." + body
    return f"{VERSION}={hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()}"
