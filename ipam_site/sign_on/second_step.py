"""The second page of a sign-in: a code of the app or a recovery code, after the right password.

Until the code is right the session belongs to nobody: it only remembers whose password was right.
"""

from __future__ import annotations

import time
from typing import Any

from django import forms
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.crypto import constant_time_compare
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters

from ipam_site.http import problems
from ipam_site.sign_on import attempts, gate, views
from pools.platform import events, login_limits, second_factor
from pools.platform.admin import forms as fields
from pools.platform.admin import pages

_PENDING = "second_step"
_SECONDS = 600  # between the password and the code


class CodeNeeded(Exception):  # noqa: N818  # no error
    """The password is right, and the account has a second factor."""

    def __init__(self, user: User) -> None:
        super().__init__()
        self.user = user


class CodeForm(forms.Form):
    code = forms.CharField(
        label=_("Code"),
        max_length=40,
        widget=fields.text(autocomplete="one-time-code", autofocus="autofocus"),
        help_text=_("Six digits of your authenticator app, or a recovery code."),
    )


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
    """Ask for the code, and sign in whoever has the right one."""
    pending: dict[str, Any] = request.session.get(_PENDING) or {}
    user = _user(pending)
    if user is None:
        request.session.pop(_PENDING, None)
        return redirect("admin:index")  # and from there to the sign-in
    form = CodeForm(request.POST or None)
    retry_after = 0
    if request.method == "POST" and form.is_valid():
        attempt = login_limits.count_attempt(user.get_username(), attempts.address(request))
        retry_after = attempt.retry_after
        factor = None if retry_after else _verify(request, user, form.cleaned_data["code"])
        if factor is not None:
            login_limits.record_success(attempt)
            del request.session[_PENDING]
            gate.sign_in(request, user, factor)
            return redirect(views.target_url(request, pending["next"]))
        form.add_error("code", attempts.too_many(retry_after) if retry_after else _WRONG)
    response = pages.page(
        request,
        "second_step.html",
        title=gettext("Second factor"),
        form=form,
        status=429 if retry_after else 200,
    )
    if retry_after:
        response.headers["Retry-After"] = str(retry_after)
    return response


_WRONG = _(
    "This code is wrong, was used before, or came too soon after a wrong one. Wait for the next code."
)


def _verify(request: HttpRequest, user: User, code: str) -> Any:
    request_id = request.META.get(problems.REQUEST_ID, "")
    author = events.Author(user.get_username(), source="sign-on", request_id=request_id)
    return second_factor.verify(user, code, author=author)


def _user(pending: dict[str, Any]) -> User | None:
    """Return the user whose password was right, unless the password or the time has changed since."""
    if not pending or pending["until"] < time.time():
        return None
    user = User.objects.filter(pk=pending["user"], is_active=True).first()
    if user is None or not constant_time_compare(pending["password"], user.get_session_auth_hash()):
        return None
    return user
