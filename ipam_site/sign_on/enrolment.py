"""The page on which users enrol their second factor, or remove it."""

from __future__ import annotations

from typing import Any

import segno
from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from unfold import widgets

from ipam_site.sign_on import attempts, gate
from pools.models import SecondFactor
from pools.platform import login_limits, second_factor
from pools.platform.admin import forms as fields
from pools.platform.admin import pages

_PENDING = "second_factor_enrolment"  # in the session: the sealed secret that the page shows


class ChangeForm(forms.Form):
    password = forms.CharField(
        label=_("Password"),
        strip=False,
        max_length=4096,
        widget=widgets.UnfoldAdminPasswordWidget(attrs={"autocomplete": "current-password"}),
        help_text=_("Your password of this site."),
    )
    code = forms.CharField(
        label=_("Code"), max_length=40, widget=fields.text(autocomplete="one-time-code")
    )


@never_cache
@sensitive_post_parameters()
def view(request: HttpRequest) -> HttpResponse:
    """Show the state of the user's second factor, enrol one, or remove it."""
    user: Any = request.user
    if not second_factor.is_possible(user):
        return _page(request, is_possible=False)
    factor = SecondFactor.objects.filter(user_id=user.pk).first()
    form = ChangeForm(request.POST or None)
    attempt = None
    if request.method == "POST" and form.is_valid():
        attempt = _count_attempt(request, form)
    return (
        _enrol(request, form, attempt)
        if factor is None
        else _remove(request, form, attempt, factor)
    )


def _count_attempt(request: HttpRequest, form: ChangeForm) -> login_limits.Attempt | None:
    """Return the counted attempt if the password is right, otherwise None with an error in the form."""
    user: Any = request.user
    attempt = login_limits.count_attempt(user.get_username(), attempts.address(request))
    if attempt.retry_after:
        form.add_error(None, attempts.too_many(attempt.retry_after))
    elif user.check_password(form.cleaned_data["password"]):
        return attempt
    else:
        form.add_error("password", gettext("This is not your password."))
    return None


def _enrol(
    request: HttpRequest, form: ChangeForm, attempt: login_limits.Attempt | None
) -> HttpResponse:
    user: Any = request.user
    if _PENDING not in request.session:
        request.session[_PENDING] = second_factor.new_secret(user)
    sealed = request.session[_PENDING]
    if attempt is not None:
        enrolment = second_factor.enrol(
            user, sealed, form.cleaned_data["code"], author=pages.author(request)
        )
        if enrolment is not None:
            login_limits.record_success(attempt)
            del request.session[_PENDING]
            factor, codes = enrolment
            gate.mark_verified(request, factor)
            # The recovery codes are in this response only: the register stores their digests.
            return _page(request, codes=codes)
        form.add_error("code", _WRONG_FIRST)
    return _page(
        request,
        form=form,
        qr_code=_qr_code(second_factor.app_url(user, sealed)),
        secret=second_factor.secret_text(user, sealed),
    )


def _remove(
    request: HttpRequest,
    form: ChangeForm,
    attempt: login_limits.Attempt | None,
    factor: SecondFactor,
) -> HttpResponse:
    if attempt is not None:
        user: Any = request.user
        author = pages.author(request)
        if second_factor.verify(user, form.cleaned_data["code"], author=author) is not None:
            login_limits.record_success(attempt)
            second_factor.remove(user, author=author)
            messages.success(request, gettext("Your second factor was removed."))
            return redirect("admin:second_factor")
        form.add_error("code", gettext("This code is wrong, or was used before."))
    return _page(request, form=form, factor=factor)


_WRONG_FIRST = _("This code is not one of this secret. Check the clock of the device.")


def _page(request: HttpRequest, **context: Any) -> HttpResponse:
    return pages.page(
        request,
        "second_factor.html",
        title=gettext("Second factor"),
        is_required=second_factor.is_required(request.user),
        **{"is_possible": True, **context},
    )


def _qr_code(text: str) -> SafeString:
    """Return the QR code as an SVG element, dark on light in both themes: apps read no other."""
    svg = segno.make(text, error="m").svg_inline(scale=5, border=4, dark="#000", light="#fff")
    return mark_safe(svg)  # noqa: S308 - rectangles only
