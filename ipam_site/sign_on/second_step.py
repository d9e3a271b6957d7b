"""The second page of a sign-in, after the right password: a passkey, a code of the app or a recovery code.

Until one is right the session belongs to nobody: it only remembers whose password was right.
"""

from __future__ import annotations

import time
from typing import Any

from django.contrib.auth import REDIRECT_FIELD_NAME
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.crypto import constant_time_compare
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters

from ipam_site.sign_on import attempts, gate, proof, views
from pools.models import SecondFactor
from pools.platform import login_limits
from pools.platform.admin import pages

_PENDING = "second_step"
_SECONDS = 600  # between the password and the second factor


class CodeNeeded(Exception):  # noqa: N818  # no error
    """The password is right, and the account has a second factor."""

    def __init__(self, user: User) -> None:
        super().__init__()
        self.user = user


def begin(request: HttpRequest, user: User) -> HttpResponse:
    """Remember whose password was right, in a new session, and lead to the page of the code."""
    next_url = request.POST.get(REDIRECT_FIELD_NAME, request.GET.get(REDIRECT_FIELD_NAME, ""))
    request.session.flush()
    request.session[_PENDING] = {
        "user": user.pk,
        "password": user.get_session_auth_hash(),
        "next": next_url,
        "until": time.time() + _SECONDS,
    }
    return redirect("admin:second_step")


@never_cache
@sensitive_post_parameters()
def view(request: HttpRequest) -> HttpResponse:
    """Ask for the code or a passkey, and sign in whoever has the right one."""
    user = pending_user(request)
    factor = SecondFactor.objects.filter(user_id=user.pk).first() if user is not None else None
    if user is None or factor is None:
        request.session.pop(_PENDING, None)
        return redirect("admin:index")  # and from there to the sign-in
    form = proof.ProofForm(request.POST or None)
    retry_after = 0
    if request.method == "POST" and form.is_valid():
        attempt = login_limits.count_attempt(user.get_username(), attempts.address(request))
        retry_after = attempt.retry_after
        if retry_after:
            form.add_error(None, attempts.too_many(retry_after))
        elif shown := proof.verify(request, user, form, reason=gettext("second step of a sign-in")):
            login_limits.record_success(attempt)
            next_url = request.session.pop(_PENDING)["next"]
            gate.sign_in(request, user, shown)
            return redirect(views.target_url(request, next_url))
    offer = proof.describe(form, request, factor)
    if not offer["has_passkey"]:
        form.fields["code"].widget.attrs["autofocus"] = "autofocus"
    response = pages.page(
        request,
        "second_step.html",
        title=gettext("Second factor"),
        form=form,
        status=429 if retry_after else form.status,
        **offer,
    )
    if retry_after:
        response.headers["Retry-After"] = str(retry_after)
    return response


def pending_user(request: HttpRequest) -> User | None:
    """Return the user whose password was right, unless the password or the time has changed since."""
    pending: dict[str, Any] = request.session.get(_PENDING) or {}
    if not pending or pending["until"] < time.time():
        return None
    user = User.objects.filter(pk=pending["user"], is_active=True).first()
    if user is None or not constant_time_compare(pending["password"], user.get_session_auth_hash()):
        return None
    return user
