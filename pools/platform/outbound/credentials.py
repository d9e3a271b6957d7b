"""Address and credentials of an API server or a webhook receiver, validated before anything is sent to it.

Kubeconfigs, forms and the API share these rules. No message repeats a credential.
"""

from __future__ import annotations

import base64
import datetime
import json
import pathlib
import re
from dataclasses import asdict, dataclass, field

from cryptography import exceptions, x509
from cryptography.hazmat.primitives import serialization
from django.conf import settings

from pools.core import errors
from pools.platform.outbound import faults, guard

LONGEST_URL = 500


@dataclass(frozen=True)
class Access:
    """The address of an API server and the credentials for it, in PEM; "" for what is not used.

    Neither repr nor str shows a credential.
    """

    server: str  # https://host:port, perhaps with a path
    ca: str = ""  # certificates in PEM; "" trusts the system's own
    token: str = field(default="", repr=False)
    certificate: str = field(default="", repr=False)
    key: str = field(default="", repr=False)
    tls_server_name: str = ""  # the name that the certificate must have, instead of the server's
    token_file: str = ""  # read for each request, instead of `token`

    def bearer(self) -> str:
        """Return the token to send, "" if there is none. Raises Unauthorized if its file is unreadable."""
        if not self.token_file:
            return self.token
        try:
            return pathlib.Path(self.token_file).read_text(encoding="ascii").strip()
        except (OSError, ValueError) as error:
            raise faults.Unauthorized("the service account's token cannot be read") from error

    def dump(self) -> bytes:
        """Return all fields with the credentials, to be sealed (pools.platform.outbound.secrets)."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def load(cls, dumped: bytes) -> Access:
        """Return the access that `dump` wrote."""
        return cls(**json.loads(dumped))


MOST_CERTIFICATES = 200  # of a CA bundle
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # RFC 6750; also keeps line ends out of the header
_PEM_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----")


def check(access: Access, *, now: datetime.datetime) -> tuple[str, ...]:
    """Return warnings about what prevents the access from working, now or soon.

    Raises InvalidInput at the fields of Access: bad_server_name, bad_token, client_key_missing,
    client_certificate_missing, no_credentials, private_key_in_ca, bad_pem, key_mismatch.
    """
    _check_fields(access)
    warnings: list[str] = []
    if access.ca:
        bundle = certificates(access.ca, "ca")
        # A bundle may contain expired CAs beside a valid one; it fails when the last one expires.
        warnings += _expiry("the certificate authority", max(bundle, key=_end), now)
    else:
        warnings.append("no certificate authority is given: the system's own are trusted")
    if access.certificate:
        client_certificate = certificates(access.certificate, "certificate")[0]
        _check_pair(client_certificate, access.key)
        warnings += _expiry("the client certificate", client_certificate, now)
    return tuple(warnings)


def _check_fields(access: Access) -> None:
    name, token = access.tls_server_name, access.token
    if name and not guard.is_name(name):
        message = "must be a host name"
        raise errors.InvalidInput.for_field("tls_server_name", "bad_server_name", message, name)
    if token and not _TOKEN.fullmatch(token):
        raise errors.InvalidInput.for_field("token", "bad_token", "is not a bearer token")
    if access.certificate and not access.key:
        message = "a client certificate needs its key"
        raise errors.InvalidInput.for_field("key", "client_key_missing", message)
    if access.key and not access.certificate:
        message = "a client key needs its certificate"
        raise errors.InvalidInput.for_field("certificate", "client_certificate_missing", message)
    if not (token or access.token_file or access.certificate):
        message = "there is neither a token nor a client certificate"
        raise errors.InvalidInput.for_field("", "no_credentials", message)


def certificates(pem: str, field: str) -> list[x509.Certificate]:
    """Parse certificates in PEM. Raises InvalidInput private_key_in_ca, bad_pem."""
    if any("PRIVATE KEY" in kind for kind in _PEM_BLOCK.findall(pem)):
        code = "private_key_in_ca" if field == "ca" else "bad_pem"
        raise errors.InvalidInput.for_field(field, code, "holds a private key beside certificates")
    try:
        bundle = x509.load_pem_x509_certificates(pem.encode())
    except ValueError:
        bundle = []
    if not 0 < len(bundle) <= MOST_CERTIFICATES:
        message = f"must hold 1 to {MOST_CERTIFICATES} certificates in PEM"
        raise errors.InvalidInput.for_field(field, "bad_pem", message)
    return bundle


def _check_pair(certificate: x509.Certificate, pem: str) -> None:
    try:
        key = serialization.load_pem_private_key(pem.encode(), password=None)
    except (ValueError, TypeError, exceptions.UnsupportedAlgorithm):  # TypeError: encrypted
        message = "must be a private key in PEM, without a password"
        raise errors.InvalidInput.for_field("key", "bad_pem", message) from None
    encoding, form = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    public_key = key.public_key().public_bytes(encoding, form)
    if public_key != certificate.public_key().public_bytes(encoding, form):
        message = "is not the key of the client certificate"
        raise errors.InvalidInput.for_field("key", "key_mismatch", message)


def _end(certificate: x509.Certificate) -> datetime.datetime:
    return certificate.not_valid_after_utc


def _expiry(subject: str, certificate: x509.Certificate, now: datetime.datetime) -> list[str]:
    end = _end(certificate)
    day = end.date().isoformat()
    if end <= now:
        return [f"{subject} expired on {day}"]
    if certificate.not_valid_before_utc > now:
        return [
            f"{subject} is not valid before {certificate.not_valid_before_utc.date().isoformat()}"
        ]
    soon = datetime.timedelta(days=settings.IPAM_ALERT_CREDENTIAL_DAYS)
    return [f"{subject} expires on {day}"] if end <= now + soon else []


def expiry_times(access: Access) -> dict[str, datetime.datetime]:
    """Return when the credentials of an access expire, as far as they say so.

    The keys are `certificate authority` (the last of its certificates), `client certificate` and `token`
    (its `exp`, unverified: the token of a service account is a JWT). Raises InvalidInput bad_pem.
    """
    expiry: dict[str, datetime.datetime] = {}
    if access.ca:
        expiry["certificate authority"] = max(map(_end, certificates(access.ca, "ca")))
    if access.certificate:
        expiry["client certificate"] = _end(certificates(access.certificate, "certificate")[0])
    if end := _token_end(access.token):
        expiry["token"] = end
    return expiry


def _token_end(token: str) -> datetime.datetime | None:
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return datetime.datetime.fromtimestamp(int(claims["exp"]), datetime.UTC)
    except (ValueError, TypeError, KeyError, OverflowError, OSError, RecursionError):
        return None


def parse_url(text: str, *, field: str = "url") -> str:
    """Return the canonical URL of a receiver of webhooks or of another server. Raises InvalidInput `url_not_allowed`, `too_long`."""
    if len(text) > LONGEST_URL:
        message = f"may have at most {LONGEST_URL} characters"
        raise errors.InvalidInput.for_field(field, "too_long", message)
    try:
        target = guard.parse_url(text)
    except errors.InvalidInput as error:
        message = error.message.removeprefix("the server's ")
        raise errors.InvalidInput.for_field(field, "url_not_allowed", f"the {message}") from None
    return target.url + ("/" if text.endswith("/") else "")


def parse_ca(value: object, field: str = "ca") -> str:
    """Return certificates in PEM, or "". Raises InvalidInput `wrong_type`, `bad_pem`, `private_key_in_ca`."""
    if not isinstance(value, str):
        raise errors.InvalidInput.for_field(field, "wrong_type", "a text is expected")
    text = value.strip()
    if text:
        certificates(text, field)
    return f"{text}\n" if text else ""
