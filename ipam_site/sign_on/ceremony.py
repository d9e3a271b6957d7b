"""Ceremonies of passkeys in a session: the challenge that it remembers, and the one answer that uses it up."""

from __future__ import annotations

import time
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from ipam_site.http import problems
from pools.core import errors
from pools.models import BrowserSession
from pools.platform import events, passkeys
from pools.platform.admin import pages
from pools.platform.second_factor import Proof

# What a challenge was made for; it is accepted for nothing else.
SIGN_IN, PROVE, CREATE = "sign-in", "prove", "create"
_PENDING = "passkey"
_SECONDS = 300  # browsers wait about as long


def site(request: HttpRequest) -> passkeys.Site:
    """Return the site of a request. Raises PasskeysUnavailable."""
    return passkeys.site_of(request.scheme or "", request.get_host())


def obstacle(request: HttpRequest) -> str:
    """Return why browsers offer no passkeys on this page, "" if they do."""
    try:
        site(request)
    except errors.PasskeysUnavailable as error:
        return gettext(error.message)
    return ""


def remember(request: HttpRequest, purpose: str, state: passkeys.State, **values: Any) -> None:
    """Remember the state of the ceremony in the session, instead of any other."""
    request.session[_PENDING] = {
        "purpose": purpose,
        "state": dict(state),
        "until": time.time() + _SECONDS,
        **values,
    }


def take(request: HttpRequest, purpose: str) -> dict[str, Any]:
    """Return what `remember` was given, once. Raises PasskeyChallengeInvalid."""
    with transaction.atomic():
        # Of two answers that came at once, both have read the session: the stored one decides.
        row = (
            BrowserSession.objects.select_for_update()
            .filter(pk=request.session.session_key)
            .first()
        )
        stored = request.session.decode(row.session_data).get(_PENDING) if row is not None else None
        if stored is None or stored != request.session.get(_PENDING):
            raise errors.PasskeyChallengeInvalid
        pending: dict[str, Any] = request.session.pop(_PENDING)
        request.session.save()
    if pending["purpose"] != purpose or pending["until"] < time.time():
        raise errors.PasskeyChallengeInvalid
    return pending


def prove(request: HttpRequest, user: User, purpose: str, *, reason: str) -> Proof:
    """Return the proof of the user's factor if the form has the answer of one of its passkeys.

    `reason` says in the history what the passkey was used for. Raises the errors of `passkeys.verify`.
    """
    state = take(request, purpose)["state"]
    document = request.POST.get("credential", "")
    return passkeys.verify(
        user, document, state, site(request), author=author(request, user, reason)
    )


def author(request: HttpRequest, user: User, reason: str = "") -> events.Author:
    """Return the user, who is not signed in yet, as the author of what a sign-in changes."""
    request_id = request.META.get(problems.REQUEST_ID, "")
    return events.Author(user.get_username(), "sign-on", request_id, reason)


def problem(error: errors.IpamError) -> problems.Problem:
    """Return the problem document of an error, in the language of the pages."""
    status = 409 if isinstance(error, errors.Conflict) else 400
    return problems.Problem(status, error.code, gettext("Passkey"), text(error))


def text(error: errors.IpamError) -> str:
    """Return an error with its code, as pages show it: who is asked for help can look the code up."""
    message = _TEXTS.get(error.code) or gettext(error.message)
    return f"{pages.sentence(str(message))} ({error.code})"


_TEXTS = {
    errors.PasskeyMalformed.code: _("The answer of the browser cannot be read."),
    errors.PasskeyChallengeInvalid.code: _(
        "The request for the passkey has expired, was answered before, or belongs to another page. Try again."
    ),
    errors.PasskeyUnknown.code: _("This passkey is not enrolled for the account on this host."),
    errors.PasskeyRefused.code: _(
        "The signature of the passkey was not accepted. The log of this site has the details."
    ),
    errors.PasskeyCounterRegressed.code: _(
        "The passkey's counter of signatures went backwards: it may have been copied. Remove it, and tell an"
        " administrator."
    ),
    errors.PasskeyExists.code: _(
        "Your account has a passkey of this name, or this passkey is enrolled already."
    ),
}
