"""The admin site: django-unfold's site with the pages that belong to no model."""

import time
from typing import Any, cast

from allauth.account.utils import get_next_redirect_url, perform_login
from allauth.mfa.models import Authenticator
from django.conf import settings
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern
from django.utils.cache import patch_cache_control
from django.utils.functional import SimpleLazyObject
from django.utils.html import format_html
from django.utils.translation import gettext, gettext_lazy as _
from django.views.i18n import JavaScriptCatalog
from unfold import forms, sites

from claims.access import cluster_owners, directory
from ipam_site.sign_on import gate, oidc
from ipam_site.sign_on.ldap_settings import DirectoryUnreachable
from pools.platform import login_limits, second_factor


class PasswordRight(Exception):  # noqa: N818  # no error
    """The password is right: django-allauth signs in, perhaps after a second factor."""

    def __init__(self, user: User) -> None:
        super().__init__()
        self.user = user


class SignIn(forms.AuthenticationForm):
    """Sign-in of staff, and of VM owners by RoleBindings of clusters, who need not be staff."""

    error_messages = {
        **forms.AuthenticationForm.error_messages,
        "invalid_login": _("Wrong user name or password."),
    }

    def clean(self) -> dict[str, Any]:
        name = str(self.cleaned_data.get("username", ""))
        if self.request is None or not name or not self.cleaned_data.get("password"):
            return super().clean()
        attempt = gate.count_attempt(self.request, name)
        try:
            cleaned = super().clean()
        except directory.SignInRefused as refusal:
            raise ValidationError(refusal.message, code=refusal.code) from refusal
        except DirectoryUnreachable as error:
            raise ValidationError(
                gettext("The directory of the organization does not answer. Try again later."),
                code="directory_unreachable",
            ) from error
        user: Any = super().get_user()
        if second_factor.is_enrolled(user):
            login_limits.record_password(attempt)
        else:
            login_limits.record_success(attempt)
        return cleaned

    def get_user(self) -> Any:
        """Raise PasswordRight, so that Django's view does not sign in by itself."""
        raise PasswordRight(super().get_user())

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

    def search(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        """Return the results of the command palette.

        Unfold's view keeps results for five minutes, also those that a user may not see any more.
        """
        begun = time.monotonic()
        text = request.GET.get("s", "").strip()
        callback = self._get_config("COMMAND", request)["search_callback"]
        found = self._get_value(callback, request, text) if text else []
        paginator = Paginator(found, len(found) or 1)
        context = {
            "page_obj": paginator,
            "results": paginator.page(1),
            "page_counter": 0,
            "execution_time": time.monotonic() - begun,
            "command_show_history": True,
            **(extra_context or {}),
        }
        return TemplateResponse(request, "unfold/helpers/command_results.html", context)

    def has_permission(self, request: HttpRequest) -> bool:
        return super().has_permission(request) or bool(cluster_owners.rights(request.user))

    def login(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Return the sign-in page, with the ways to sign in that this site has."""
        next_url = request.GET.get(REDIRECT_FIELD_NAME, "")
        sign_on = {
            "sign_on_url": oidc.start_url(next_url),
            "sign_on_name": settings.IPAM_OIDC_NAME,
            "has_passkeys": Authenticator.objects.filter(type="webauthn").exists(),
            "redirect_field": format_html('<input type="hidden" name="next" value="{}">', next_url),
        }
        try:
            return super().login(request, {**sign_on, **(extra_context or {})})
        except PasswordRight as right:
            target = get_next_redirect_url(request)
            signed_in: HttpResponse = perform_login(request, right.user, redirect_url=target)
            return signed_in

    def logout(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        """Sign out, and offer to sign out at the directory as well.

        The content security policy forbids that a form leads there: the page has a link.
        """
        url = request.session.get(oidc.LOGOUT_URL, "") if oidc.is_enabled() else ""
        context = {"sign_on_logout_url": url, "sign_on_name": settings.IPAM_OIDC_NAME}
        return super().logout(request, {**context, **(extra_context or {})})

    def extra_urls(self) -> list[URLPattern]:
        """Return the URL patterns directly below /admin/."""
        from pools.admin import urls  # noqa: PLC0415  # its modules register models with this site

        return [*urls.admin_urls(self)]
