"""The pages of django-allauth that this site has, below /admin/: without sign-up, e-mail and reset of passwords."""

from __future__ import annotations

from typing import Any

from allauth.account import views as account
from allauth.mfa.base import views as mfa
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes import views as recovery_codes
from allauth.mfa.totp import views as totp
from allauth.mfa.webauthn import views as webauthn
from allauth.mfa.webauthn.internal import auth as challenges
from django.contrib import admin
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import path
from django.views import View

from ipam_site.sign_on import forms


class ActivateTOTP(totp.ActivateTOTPView):
    def form_valid(self, form: Any) -> HttpResponse:
        """Enrol the app; the code that was shown does not sign in afterwards."""
        response: HttpResponse = super().form_valid(form)
        rows = Authenticator.objects.filter(user_id=self.request.user.pk)
        with transaction.atomic():
            forms.use_up(rows.get(type=Authenticator.Type.TOTP), form.cleaned_data["code"])
        return response


class _Dated(View):
    """A page that gives a browser a challenge, which allauth remembers without its time."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        last = challenges.get_state()
        response = super().dispatch(request, *args, **kwargs)
        forms.date_challenge(request, last)
        return response


class Authenticate(_Dated, mfa.AuthenticateView):
    pass


class SignInWithPasskey(_Dated, webauthn.LoginWebAuthnView):
    pass


class PasskeyAgain(_Dated, webauthn.ReauthenticateWebAuthnView):
    pass


class AddPasskey(_Dated, webauthn.AddWebAuthnView):
    def get_form(self, form_class: Any = None) -> Any:
        """Return the one form of the request: allauth makes two, and the challenge is good for one."""
        if not hasattr(self, "_form"):
            self._form = super().get_form(form_class)
        return self._form


# The frame of the admin would link to the list of the model, which has none.
_OF_NO_LIST = {"object": None}

urlpatterns = [
    path("login/code/", Authenticate.as_view(), name="mfa_authenticate"),
    path("login/passkey/", SignInWithPasskey.as_view(), name="mfa_login_webauthn"),
    path("second-factor/", mfa.index, name="mfa_index"),
    path("second-factor/confirm/", account.reauthenticate, name="account_reauthenticate"),
    path("second-factor/confirm/code/", mfa.reauthenticate, name="mfa_reauthenticate"),
    path(
        "second-factor/confirm/passkey/",
        PasskeyAgain.as_view(),
        name="mfa_reauthenticate_webauthn",
    ),
    path("second-factor/app/", ActivateTOTP.as_view(), name="mfa_activate_totp"),
    path("second-factor/app/remove/", totp.deactivate_totp, name="mfa_deactivate_totp"),
    path(
        "second-factor/recovery-codes/",
        recovery_codes.view_recovery_codes,
        name="mfa_view_recovery_codes",
    ),
    path(
        "second-factor/recovery-codes/generate/",
        recovery_codes.generate_recovery_codes,
        name="mfa_generate_recovery_codes",
    ),
    path("second-factor/passkeys/", webauthn.list_webauthn, name="mfa_list_webauthn"),
    path("second-factor/passkeys/add/", AddPasskey.as_view(), name="mfa_add_webauthn"),
    path(
        "second-factor/passkeys/<int:pk>/remove/",
        webauthn.RemoveWebAuthnView.as_view(extra_context=_OF_NO_LIST),
        name="mfa_remove_webauthn",
    ),
    path(
        "second-factor/passkeys/<int:pk>/edit/",
        webauthn.EditWebAuthnView.as_view(extra_context=_OF_NO_LIST),
        name="mfa_edit_webauthn",
    ),
]
# By what names django-allauth knows pages of the admin, which answers them.
admin_names = [
    path("login/", admin.site.login, name="account_login"),
    path("logout/", admin.site.logout, name="account_logout"),
]
