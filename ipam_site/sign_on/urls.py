"""The pages of django-allauth that this site has, below /admin/: without sign-up, e-mail and reset of passwords."""

from typing import Any

from allauth.account import views as account
from allauth.mfa.models import Authenticator
from allauth.mfa.totp import views as totp
from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.contrib.auth.views import PasswordResetConfirmView
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, URLResolver, include, path, reverse_lazy
from django.utils.translation import gettext, gettext_lazy as _
from unfold.widgets import INPUT_CLASSES

from ipam_site.sign_on import forms
from pools.platform import second_factor


class ActivateTOTP(totp.ActivateTOTPView):
    def form_valid(self, form: Any) -> HttpResponse:
        """Enrol the app; the code that was shown does not sign in afterwards."""
        response: HttpResponse = super().form_valid(form)
        rows = Authenticator.objects.filter(user_id=self.request.user.pk)
        with transaction.atomic():
            forms.use_up(rows.get(type=Authenticator.Type.TOTP), form.cleaned_data["code"])
        return response


class SetPassword(PasswordResetConfirmView):
    """Django's page that a link from an administrator leads to: it sets the password of an account of this site."""

    template_name = "cadastre/set_password.html"
    title = _("Set your password")
    success_url = reverse_lazy("admin:login")

    def get_user(self, uidb64: str) -> User | None:
        user: User | None = super().get_user(uidb64)
        is_local = user is not None and user.is_active and not second_factor.is_of_directory(user)
        return user if is_local else None

    def get_form(self, form_class: Any = None) -> Any:
        form = super().get_form(form_class)
        for field in form.fields.values():
            field.widget.attrs["class"] = " ".join(INPUT_CLASSES)
        return form

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        return super().get_context_data(**admin.site.each_context(self.request), **context)

    def render_to_response(self, context: Any, **options: Any) -> HttpResponse:
        """Lead to the site, and so to the sign-in, where the link is none, whatever it names."""
        if self.validlink:
            return super().render_to_response(context, **options)
        messages.error(
            self.request,
            gettext(
                "This link is not valid any more: it was used, or its time is over. Ask for another one."
            ),
        )
        return redirect("admin:index")


urlpatterns: list[URLPattern | URLResolver] = [
    path("set-password/<uidb64>/<token>/", SetPassword.as_view(), name="set_password"),
    path("second-factor/confirm/", account.reauthenticate, name="account_reauthenticate"),
    path("second-factor/totp/activate/", ActivateTOTP.as_view(), name="mfa_activate_totp"),
    path("second-factor/", include("allauth.mfa.urls")),
]
# By what names django-allauth knows pages of the admin, which answers them.
admin_names = [
    path("login/", admin.site.login, name="account_login"),
    path("logout/", admin.site.logout, name="account_logout"),
]
