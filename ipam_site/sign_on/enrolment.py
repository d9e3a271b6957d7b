"""The page on which users see their second factor, and enrol an authenticator app or passkeys."""

from __future__ import annotations

import uuid
from typing import Any

import segno
from django import forms
from django.contrib import messages
from django.core.exceptions import NON_FIELD_ERRORS
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from ipam_site.http import problems
from ipam_site.sign_on import ceremony, gate, proof
from pools.core import errors
from pools.models import Passkey, SecondFactor
from pools.platform import login_limits, passkeys, second_factor
from pools.platform.admin import forms as fields
from pools.platform.admin import pages
from pools.platform.second_factor import Proof

_PENDING = "second_factor_enrolment"  # in the session: the sealed secret that the page shows


class AppForm(forms.Form):
    password = proof.password_field()
    code = forms.CharField(
        label=_("Code"), max_length=40, widget=fields.text(autocomplete="one-time-code")
    )


class PasskeyForm(forms.Form):
    name = forms.CharField(
        label=_("Name"),
        max_length=100,
        widget=fields.text(),
        help_text=_("To tell your passkeys apart, such as the name of the device."),
    )
    password = proof.password_field()
    credential = forms.CharField(required=False, widget=forms.HiddenInput)


@never_cache
@sensitive_post_parameters()
def view(request: HttpRequest) -> HttpResponse:
    """Show the state of the user's second factor, and enrol an app."""
    user: Any = request.user
    factor = SecondFactor.objects.filter(user_id=user.pk).first()
    if request.method != "POST" or not second_factor.is_possible(user):
        return _page(request)
    if factor is not None and factor.sealed:
        return redirect("admin:second_factor")
    form = AppForm(request.POST)
    codes = _enrol_app(request, form) if form.is_valid() else None
    if codes is None:
        return _page(request, app_form=form)
    return _enrolled(request, codes, gettext("The authenticator app was enrolled."))


def _enrol_app(request: HttpRequest, form: AppForm) -> list[str] | None:
    """Return the recovery codes if the factor is new, otherwise []; None with an error in the form."""
    user: Any = request.user
    attempt = proof.count_attempt(request, form, form.cleaned_data["password"])
    if attempt is None:
        return None
    enrolment = second_factor.enrol(
        user, _secret(request), form.cleaned_data["code"], author=pages.author(request)
    )
    if enrolment is None:
        form.add_error("code", _WRONG_FIRST)
        return None
    login_limits.record_success(attempt)
    del request.session[_PENDING]
    gate.mark_verified(request, Proof(enrolment[0]))
    return enrolment[1]


_WRONG_FIRST = _("This code is not one of this secret. Check the clock of the device.")


@never_cache
@sensitive_post_parameters()
@require_POST
def creation_options(request: HttpRequest) -> HttpResponse:
    """Return the options for a new passkey as JSON, if name and password are right."""
    user: Any = request.user
    form = PasskeyForm(request.POST)
    attempt = None
    if second_factor.is_possible(user) and form.is_valid():
        attempt = proof.count_attempt(request, form, form.cleaned_data["password"])
    if attempt is None:
        return _form_problem(form).response(request)
    login_limits.record_password(attempt)
    name = form.cleaned_data["name"]
    factor = SecondFactor.objects.filter(user_id=user.pk).first()
    handle = uuid.uuid4() if factor is None else factor.handle
    try:
        if Passkey.objects.filter(user_id=user.pk, name=name).exists():
            raise errors.PasskeyExists
        options, state = passkeys.creation_options(user, ceremony.site(request), handle)
    except errors.IpamError as error:
        return ceremony.problem(error).response(request)
    ceremony.remember(request, ceremony.CREATE, state, name=name, handle=str(handle))
    return JsonResponse(options)


def _form_problem(form: PasskeyForm) -> problems.Problem:
    """Return the problem document of a form with errors, or of an account that can have no passkey."""
    if not form.errors:
        return problems.Problem(403, "permission_denied", "Forbidden", str(_DIRECTORY))
    texts = [
        f"{form[name].label}: {errors[0]}" if name in form.fields else str(errors[0])
        for name, errors in form.errors.items()
    ]
    is_throttled = form.has_error(NON_FIELD_ERRORS, "too_many_attempts")
    status, code = (429, "throttled") if is_throttled else (400, "invalid")
    return problems.Problem(status, code, gettext("The passkey was not added."), " ".join(texts))


@never_cache
@sensitive_post_parameters()
@require_POST
def add_passkey(request: HttpRequest) -> HttpResponse:
    """Store the passkey that the browser made."""
    user: Any = request.user
    try:
        pending = ceremony.take(request, ceremony.CREATE)
        factor, codes = passkeys.enrol(
            user,
            request.POST.get("credential", ""),
            pending["state"],
            ceremony.site(request),
            name=pending["name"],
            handle=uuid.UUID(pending["handle"]),
            author=pages.author(request),
        )
    except errors.IpamError as error:
        problem = ceremony.problem(error)
        return _page(request, status=problem.status, passkey_error=problem.detail)
    if codes:
        gate.mark_verified(request, Proof(factor))
    return _enrolled(request, codes, gettext("The passkey was added."))


def _enrolled(request: HttpRequest, codes: list[str], text: str) -> HttpResponse:
    if not codes:
        messages.success(request, text)
        return redirect("admin:second_factor")
    # The recovery codes are in this response only: the register stores their digests.
    return pages.page(
        request, "second_factor.html", title=gettext("Second factor"), is_possible=True, codes=codes
    )


def _page(request: HttpRequest, *, status: int = 200, **context: Any) -> HttpResponse:
    user: Any = request.user
    factor = SecondFactor.objects.filter(user_id=user.pk).first()
    is_possible = second_factor.is_possible(user)
    if is_possible and (factor is None or not factor.sealed):
        sealed = _secret(request)
        context = {
            "app_form": AppForm(),
            "qr_code": _qr_code(second_factor.app_url(user, sealed)),
            "secret": second_factor.secret_text(user, sealed),
            **context,
        }
    return pages.page(
        request,
        "second_factor.html",
        title=gettext("Second factor"),
        status=status,
        is_possible=is_possible,
        is_required=second_factor.is_required(user),
        factor=factor,
        passkeys=Passkey.objects.filter(user_id=user.pk).order_by("pk"),
        passkey_form=PasskeyForm(),
        obstacle=ceremony.obstacle(request),
        **context,
    )


def _secret(request: HttpRequest) -> str:
    """Return the sealed secret for an app, the same until it is enrolled."""
    user: Any = request.user
    if _PENDING not in request.session:
        request.session[_PENDING] = second_factor.new_secret(user)
    sealed: str = request.session[_PENDING]
    return sealed


_DIRECTORY = _(
    "This account does not sign in with a password of this site: its second factor is at the directory of the"
    " organization."
)


def _qr_code(text: str) -> SafeString:
    """Return the QR code as an SVG element, dark on light in both themes: apps read no other."""
    svg = segno.make(text, error="m").svg_inline(scale=5, border=4, dark="#000", light="#fff")
    return mark_safe(svg)  # noqa: S308 - rectangles only
