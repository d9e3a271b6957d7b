"""The admin site: django-unfold's site with the pages that belong to no model."""

from __future__ import annotations

from typing import Any, cast

from django.conf import settings
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.contrib.auth.forms import AuthenticationForm
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.cache import patch_cache_control
from django.utils.functional import SimpleLazyObject
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.i18n import JavaScriptCatalog
from unfold import forms, sites

from claims.access import cluster_owners, directory
from ipam_site.sign_on import (
    attempts,
    enrolment,
    oidc,
    passkey_sign_in,
    removal,
    second_step,
    views,
)
from ipam_site.sign_on.ldap_settings import DirectoryUnreachable
from pools.platform import login_limits, second_factor


class SignIn(forms.AuthenticationForm):
    """Sign-in of staff, and of VM owners by RoleBindings of clusters, who need not be staff.

    `retry_after` is the number of seconds to wait after too many failed attempts, else 0; `needs_code`
    says that the password alone does not sign in.
    """

    retry_after = 0
    needs_code = False

    def clean(self) -> dict[str, Any]:
        name = str(self.cleaned_data.get("username", ""))
        if self.request is None or not name or not self.cleaned_data.get("password"):
            return super().clean()
        attempt = login_limits.count_attempt(name, attempts.address(self.request))
        if attempt.retry_after:
            self.retry_after = attempt.retry_after
            raise attempts.too_many(attempt.retry_after)
        try:
            cleaned = super().clean()
        except directory.SignInRefused as refusal:
            raise ValidationError(refusal.message, code=refusal.code) from refusal
        except DirectoryUnreachable as error:
            raise ValidationError(
                gettext("The directory of the organization does not answer. Try again later."),
                code="directory_unreachable",
            ) from error
        self.needs_code = second_factor.is_enrolled(self.get_user())
        if self.needs_code:
            login_limits.record_password(attempt)
        else:
            login_limits.record_success(attempt)
        return cleaned

    def get_user(self) -> Any:
        """Return the user to sign in. Raises CodeNeeded if the password alone does not do that."""
        user = super().get_user()
        if self.needs_code:
            raise second_step.CodeNeeded(user)
        return user

    def confirm_login_allowed(self, user: Any) -> None:
        if cluster_owners.rights(user):
            AuthenticationForm.confirm_login_allowed(self, user)
        else:
            super().confirm_login_allowed(user)


class Site(sites.UnfoldAdminSite):
    index_title = _("Overview")
    index_template = "cadastre/overview.html"
    login_form = SignIn

    def i18n_javascript(
        self,
        request: HttpRequest,
        extra_context: dict[str, Any] | None = None,  # noqa: ARG002  # Django's signature
    ) -> HttpResponse:
        """Return the JavaScript translation catalog of Django and of our own scripts; browsers keep it for an hour."""
        response = cast("HttpResponse", JavaScriptCatalog.as_view()(request))
        patch_cache_control(response, private=True, max_age=3600)
        return response

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> Any:
        """Return Django's list of models, made when it is read: the menu is another, so most pages do not."""
        return SimpleLazyObject(lambda: super(Site, self).get_app_list(request, app_label))

    def has_permission(self, request: HttpRequest) -> bool:
        return super().has_permission(request) or bool(cluster_owners.rights(request.user))

    def login(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Return the sign-in page, with 429 and Retry-After after too many failed attempts."""
        next_url = request.GET.get(REDIRECT_FIELD_NAME, "")
        sign_on = {
            "sign_on_url": views.start_url(next_url),
            "sign_on_name": settings.IPAM_OIDC_NAME,
            "has_passkeys": passkey_sign_in.is_offered(request),
            "next_url": next_url,
        }
        try:
            response = super().login(request, {**sign_on, **(extra_context or {})})
        except second_step.CodeNeeded as needed:
            return second_step.begin(request, needed.user)
        form = (getattr(response, "context_data", None) or {}).get("form")
        if isinstance(form, SignIn) and form.retry_after:
            response.status_code = 429
            response.headers["Retry-After"] = str(form.retry_after)
        return response

    def logout(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        """Sign out, and offer to sign out at the directory as well.

        The content security policy forbids that a form leads there: the page has a link.
        """
        id_token = request.session.get(views.ID_TOKEN, "")
        back = request.build_absolute_uri(reverse("admin:login"))
        url = oidc.logout_url(id_token, back) if id_token and oidc.is_enabled() else ""
        context = {"sign_on_logout_url": url, "sign_on_name": settings.IPAM_OIDC_NAME}
        return super().logout(request, {**context, **(extra_context or {})})

    def extra_urls(self) -> list[URLPattern]:
        """Return the URL patterns directly below /admin/."""
        from pools.admin import urls  # noqa: PLC0415  # its modules register models with this site

        open_to_all = (
            ("login/code/", second_step.view, "second_step"),
            ("login/passkey/", passkey_sign_in.sign_in, "passkey_sign_in"),
            ("login/passkey/options/", passkey_sign_in.sign_in_options, "passkey_sign_in_options"),
            ("login/code/options/", passkey_sign_in.proof_options, "passkey_proof_options"),
        )
        passkeys = "second-factor/passkeys/"
        of_staff = (
            ("second-factor/", enrolment.view, "second_factor"),
            ("second-factor/remove/", removal.view, "second_factor_remove"),
            (passkeys, enrolment.add_passkey, "passkey_add"),
            (f"{passkeys}options/", enrolment.creation_options, "passkey_creation_options"),
            (f"{passkeys}<int:passkey_id>/remove/", removal.view, "passkey_remove"),
        )
        return [
            *(path(route, view, name=name) for route, view, name in open_to_all),
            *(path(route, self.admin_view(view), name=name) for route, view, name in of_staff),
            *urls.admin_urls(self),
        ]
