"""The pages of django-allauth that this site has, below /admin/: without sign-up, e-mail and reset of passwords."""

from __future__ import annotations

from typing import Any

from allauth.account import views as account
from allauth.mfa.models import Authenticator
from allauth.mfa.totp import views as totp
from django.contrib import admin
from django.db import transaction
from django.http import HttpResponse
from django.urls import URLPattern, URLResolver, include, path

from ipam_site.sign_on import forms


class ActivateTOTP(totp.ActivateTOTPView):
    def form_valid(self, form: Any) -> HttpResponse:
        """Enrol the app; the code that was shown does not sign in afterwards."""
        response: HttpResponse = super().form_valid(form)
        rows = Authenticator.objects.filter(user_id=self.request.user.pk)
        with transaction.atomic():
            forms.use_up(rows.get(type=Authenticator.Type.TOTP), form.cleaned_data["code"])
        return response


urlpatterns: list[URLPattern | URLResolver] = [
    path("second-factor/confirm/", account.reauthenticate, name="account_reauthenticate"),
    path("second-factor/totp/activate/", ActivateTOTP.as_view(), name="mfa_activate_totp"),
    path("second-factor/", include("allauth.mfa.urls")),
]
# By what names django-allauth knows pages of the admin, which answers them.
admin_names = [
    path("login/", admin.site.login, name="account_login"),
    path("logout/", admin.site.logout, name="account_logout"),
]
