"""Passkeys and security keys (WebAuthn) of accounts of this site; the protocol is that of Yubico's fido2.

A ceremony is the exchange of a challenge and its signature. Its state, which the caller keeps until the browser
answers, is what the library returned with the options for the browser.
"""

from __future__ import annotations

import ipaddress
import json
import logging
import struct
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib import parse

from django.contrib.auth.models import User
from django.db import IntegrityError
from fido2 import cose, webauthn
from fido2.server import Fido2Server
from fido2.utils import websafe_encode
from fido2.webauthn import ResidentKeyRequirement, UserVerificationRequirement

from pools.core import errors
from pools.core.translation import gettext_noop
from pools.models import Passkey, SecondFactor
from pools.platform import database, events, second_factor
from pools.platform.second_factor import Proof

_NAME = "Cadastre"
_LARGEST_ID = 1023  # bytes, by WebAuthn
# What fido2 raises for what it cannot read, or does not accept.
_REFUSALS = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    AssertionError,
    OverflowError,
    NotImplementedError,
    RecursionError,
    struct.error,
)

T = TypeVar("T")
State = Mapping[str, Any]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Site:
    """The host to which passkeys belong, and the origin of its pages, which browsers sign."""

    rp_id: str
    origin: str


def site_of(scheme: str, host: str) -> Site:
    """Return the site of a request to `host`, which may have a port. Raises PasskeysUnavailable."""
    url = parse.urlsplit(f"{scheme}://{host.lower()}")
    name = url.hostname or ""
    if _is_address(name):
        raise errors.PasskeysUnavailable(_BY_ADDRESS)
    if scheme != "https" and name != "localhost" and not name.endswith(".localhost"):
        raise errors.PasskeysUnavailable(_UNENCRYPTED)
    port = "" if url.port in {None, {"https": 443, "http": 80}[scheme]} else f":{url.port}"
    return Site(name, f"{scheme}://{name}{port}")


_BY_ADDRESS = gettext_noop(
    "Passkeys belong to a host name, and this page was opened by an IP address. Open it by the name of the"
    " site, on the same machine as localhost instead of 127.0.0.1."
)
_UNENCRYPTED = gettext_noop("Browsers offer passkeys on pages with HTTPS only, and on localhost.")


def creation_options(user: User, site: Site, handle: uuid.UUID) -> tuple[dict[str, Any], State]:
    """Return the options with which a browser makes a new passkey, and the state of the ceremony.

    Security keys that cannot verify their user, or cannot store a passkey, are accepted as second factor.
    """
    options, state = _server(site).register_begin(
        webauthn.PublicKeyCredentialUserEntity(
            id=handle.bytes,
            name=user.get_username(),
            display_name=user.get_full_name() or user.get_username(),
        ),
        credentials=_descriptors(user, site),
        resident_key_requirement=ResidentKeyRequirement.PREFERRED,
        user_verification=UserVerificationRequirement.PREFERRED,
    )
    return _json(options.public_key), state


def request_options(user: User | None, site: Site) -> tuple[dict[str, Any], State]:
    """Return the options with which a browser signs, and the state of the ceremony.

    Without a user the passkey is the only factor: the device finds it, and has to verify its user.
    """
    options, state = _server(site).authenticate_begin(
        credentials=None if user is None else _descriptors(user, site),
        user_verification=(
            UserVerificationRequirement.REQUIRED
            if user is None
            else UserVerificationRequirement.PREFERRED
        ),
    )
    return _json(options.public_key), state


def enrol(
    user: User,
    document: str,
    state: State,
    site: Site,
    *,
    name: str,
    handle: uuid.UUID,
    author: events.Author,
) -> tuple[SecondFactor, list[str]]:
    """Store the passkey that a browser made; return the factor, and its recovery codes if it is new.

    `document` is the JSON text of a RegistrationResponse. Raises PasskeyMalformed, PasskeyChallengeInvalid,
    PasskeyRefused, PasskeyExists, or NotAllowed for an account of a directory.
    """
    answer = _read(webauthn.RegistrationResponse.from_dict, document)
    client_data = answer.response.client_data
    data = _accept(client_data, state, lambda: _server(site).register_complete(state, answer))
    credential = data.credential_data
    if credential is None or not 0 < len(credential.credential_id) <= _LARGEST_ID:
        raise errors.PasskeyMalformed
    if credential.public_key.ALGORITHM not in cose.CoseKey.supported_algorithms():
        raise errors.PasskeyRefused
    try:
        with events.recorded_by(author):
            enrolment = second_factor.lock_or_create(user, handle)
            if enrolment is None:
                raise errors.NotAllowed
            Passkey.objects.create(
                user=user,
                name=name,
                rp_id=site.rp_id,
                credential_id=credential.credential_id,
                credential=bytes(credential),
                sign_count=data.counter,
            )
    except IntegrityError as error:
        raise errors.PasskeyExists from error
    return enrolment


def owner(document: str, site: Site) -> User | None:
    """Return the user of the passkey with which a browser signed. Raises PasskeyMalformed."""
    answer = _read(webauthn.AuthenticationResponse.from_dict, document)
    rows = Passkey.objects.filter(credential_id=answer.raw_id, rp_id=site.rp_id)
    passkey = rows.select_related("user").first()
    return passkey.user if passkey is not None else None


def verify(user: User, document: str, state: State, site: Site, *, author: events.Author) -> Proof:
    """Return the proof of the user's factor if one of its passkeys signed the challenge of the state.

    `document` is the JSON text of an AuthenticationResponse. Raises PasskeyMalformed, PasskeyChallengeInvalid,
    PasskeyUnknown, PasskeyRefused, PasskeyCounterRegressed.
    """
    answer = _read(webauthn.AuthenticationResponse.from_dict, document)
    with events.recorded_by(author):
        factors = SecondFactor.objects.select_for_update().filter(user_id=user.pk)
        factor: SecondFactor | None = factors.first()
        passkey = Passkey.objects.filter(
            user_id=user.pk, credential_id=answer.raw_id, rp_id=site.rp_id
        ).first()
        if factor is None or passkey is None:
            raise errors.PasskeyUnknown
        if answer.response.user_handle not in {None, factor.handle.bytes}:
            raise errors.PasskeyUnknown
        credential = webauthn.AttestedCredentialData(bytes(passkey.credential))
        _accept(
            answer.response.client_data,
            state,
            lambda: _server(site).authenticate_complete(state, [credential], answer),
        )
        is_regressed = _count(passkey, answer.response.authenticator_data.counter)
    if is_regressed:  # after the transaction, which has recorded it
        raise errors.PasskeyCounterRegressed
    return Proof(factor, passkey)


def remove(user: User, passkey_id: int, *, author: events.Author) -> None:
    """Remove a passkey of the user, and with the last one of an account without an app the second factor."""
    with events.recorded_by(author):
        factor = SecondFactor.objects.select_for_update().filter(user_id=user.pk).first()
        Passkey.objects.filter(user_id=user.pk, pk=passkey_id).delete()
        if factor and not factor.sealed and not Passkey.objects.filter(user_id=user.pk).exists():
            factor.delete()


def _count(passkey: Passkey, count: int) -> bool:
    """Record the counter of a signature; return True if it is not higher than the last one."""
    if count <= passkey.sign_count and (count or passkey.sign_count):
        log.warning("passkey %s: counter %s after %s", passkey.pk, count, passkey.sign_count)
        passkey.regressed_at = database.now()
        passkey.save(update_fields=["regressed_at"])
        return True
    passkey.sign_count, passkey.last_used_at = count, database.now()
    passkey.save(update_fields=["sign_count", "last_used_at"])
    return False


def _read(parse_answer: Callable[[Mapping[str, Any]], T], document: str) -> T:
    try:
        answer = json.loads(document)
        if not isinstance(answer, dict):
            raise TypeError
        return parse_answer(answer)
    except _REFUSALS as error:
        raise errors.PasskeyMalformed from error


def _accept(
    client_data: webauthn.CollectedClientData, state: State, complete: Callable[[], T]
) -> T:
    """Return what the library returns if it accepts the answer to the challenge of the state."""
    if websafe_encode(client_data.challenge) != state["challenge"]:
        raise errors.PasskeyChallengeInvalid
    if client_data.cross_origin:
        raise errors.PasskeyRefused
    try:
        return complete()
    except _REFUSALS as error:
        log.warning("a passkey was refused: %s", error)
        raise errors.PasskeyRefused from error


def _server(site: Site) -> Fido2Server:
    return Fido2Server(
        webauthn.PublicKeyCredentialRpEntity(id=site.rp_id, name=_NAME),
        attestation=webauthn.AttestationConveyancePreference.NONE,
        # By itself the library accepts pages of subdomains, and of other ports, too.
        verify_origin=lambda origin: origin == site.origin,
    )


def _descriptors(user: User, site: Site) -> list[webauthn.PublicKeyCredentialDescriptor]:
    return [
        webauthn.PublicKeyCredentialDescriptor(
            type=webauthn.PublicKeyCredentialType.PUBLIC_KEY, id=bytes(passkey.credential_id)
        )
        for passkey in Passkey.objects.filter(user_id=user.pk, rp_id=site.rp_id).order_by("pk")
    ]


def _json(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as values of JSON; fido2's mappings are of its own classes."""
    values: dict[str, Any] = json.loads(json.dumps(dict(options), default=dict))
    return values


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
