"""The form fields that prove a second factor: a code, or the answer of a passkey; and the password beside them."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold import widgets

from ipam_site.sign_on import attempts, ceremony
from pools.core import errors
from pools.models import Passkey, SecondFactor
from pools.platform import login_limits, second_factor
from pools.platform.admin import forms as fields
from pools.platform.second_factor import Proof


class ProofForm(forms.Form):
    """A code, or what the browser answered for a passkey; `status` is 400 if that was refused."""

    code = forms.CharField(
        label=_("Code"),
        required=False,
        max_length=40,
        widget=fields.text(autocomplete="one-time-code"),
    )
    credential = forms.CharField(required=False, widget=forms.HiddenInput)
    status = 200

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if not cleaned.get("credential") and not cleaned.get("code") and "code" not in self.errors:
            self.add_error("code", self.fields["code"].error_messages["required"])
        return cleaned


def password_field() -> forms.CharField:
    return forms.CharField(
        label=_("Password"),
        strip=False,
        max_length=4096,
        widget=widgets.UnfoldAdminPasswordWidget(attrs={"autocomplete": "current-password"}),
        help_text=_("Your password of this site."),
    )


def describe(form: ProofForm, request: HttpRequest, factor: SecondFactor) -> dict[str, Any]:
    """Explain the code of the form; return what its template says of passkeys."""
    form.fields["code"].help_text = (
        gettext("Six digits of your authenticator app, or a recovery code.")
        if factor.sealed
        else gettext("A recovery code, if you do not have your passkey.")
    )
    hosts = set(Passkey.objects.filter(user_id=factor.user_id).values_list("rp_id", flat=True))
    obstacle = ceremony.obstacle(request) if hosts else ""
    return {
        "has_passkey": not obstacle and bool(hosts) and ceremony.site(request).rp_id in hosts,
        "obstacle": obstacle,
    }


def verify(request: HttpRequest, user: User, form: ProofForm, *, reason: str) -> Proof | None:
    """Return the proof of the user's factor, None with an error in the form if what was sent is not right."""
    if form.cleaned_data["credential"]:
        try:
            return ceremony.prove(request, user, ceremony.PROVE, reason=reason)
        except errors.InvalidInput as error:
            form.status = 400
            form.add_error(None, ValidationError(ceremony.text(error), code=error.code))
            return None
    author = ceremony.author(request, user)
    factor = second_factor.verify(user, form.cleaned_data["code"], author=author)
    if factor is None:
        form.add_error("code", _WRONG)
        return None
    return Proof(factor)


_WRONG = _(
    "This code is wrong, was used before, or came too soon after a wrong one. Wait for the next code."
)


def count_attempt(
    request: HttpRequest, form: forms.Form, password: str
) -> login_limits.Attempt | None:
    """Return the counted attempt if the password of the signed-in user is right, otherwise None with an error."""
    user: Any = request.user
    attempt = login_limits.count_attempt(user.get_username(), attempts.address(request))
    if attempt.retry_after:
        form.add_error(None, attempts.too_many(attempt.retry_after))
    elif user.check_password(password):
        return attempt
    else:
        form.add_error("password", gettext("This is not your password."))
    return None
