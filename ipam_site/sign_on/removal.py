"""The pages that remove a second factor, or one of its passkeys."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters

from ipam_site.sign_on import gate, proof
from pools.models import Passkey, SecondFactor
from pools.platform import login_limits, passkeys, second_factor
from pools.platform.admin import pages
from pools.platform.second_factor import Proof


class RemovalForm(proof.ProofForm):
    password = proof.password_field()
    field_order = ("password", "code")


@never_cache
@sensitive_post_parameters()
def view(request: HttpRequest, passkey_id: int | None = None) -> HttpResponse:
    """Remove a passkey, without an id the whole second factor, after password and second factor were right."""
    user: Any = request.user
    factor = SecondFactor.objects.filter(user_id=user.pk).first()
    if factor is None:
        return redirect("admin:second_factor")
    passkey = passkey_id and get_object_or_404(Passkey, user_id=user.pk, pk=passkey_id)
    form = RemovalForm(request.POST or None)
    if request.method == "POST" and form.is_valid() and _is_proven(request, user, form):
        if passkey:
            passkeys.remove(user, passkey.pk, author=pages.author(request))
            messages.success(
                request, gettext("The passkey %(name)s was removed.") % {"name": passkey}
            )
        else:
            second_factor.remove(user, author=pages.author(request))
            messages.success(request, gettext("Your second factor was removed."))
        # This session has just proven itself, and rests on nothing that was removed.
        left = SecondFactor.objects.filter(user_id=user.pk).first()
        gate.mark_verified(request, left and Proof(left))
        return redirect("admin:second_factor")
    title = gettext("Remove passkey %(name)s") if passkey else gettext("Remove second factor")
    return pages.page(
        request,
        "second_factor_remove.html",
        title=title % {"name": passkey},
        status=form.status,
        form=form,
        effects=_effects(user, factor, is_one=bool(passkey)),
        **proof.describe(form, request, factor),
    )


def _is_proven(request: HttpRequest, user: Any, form: RemovalForm) -> bool:
    attempt = proof.count_attempt(request, form, form.cleaned_data["password"])
    if attempt is None:
        return False
    if proof.verify(request, user, form, reason=gettext("removal of a factor")) is None:
        return False
    login_limits.record_success(attempt)
    return True


def _effects(user: Any, factor: SecondFactor, *, is_one: bool) -> list[str]:
    if is_one and (factor.sealed or Passkey.objects.filter(user_id=user.pk).count() > 1):
        return [
            gettext("It signs in no more. Delete it in the device or password manager, too."),
            gettext("Your second factor stays on. Sessions that this passkey signed in end."),
        ]
    return [
        gettext("Authenticator app, passkeys and recovery codes are removed from your account."),
        gettext("Your other sessions end."),
        gettext("You then sign in with the password alone, or enrol a new second factor."),
    ]
