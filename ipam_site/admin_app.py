"""The admin app with Cadastre's site, without the pages of tables that no administrator has to edit."""

from __future__ import annotations

from django.apps import apps as installed
from django.contrib import admin
from django.contrib.admin import apps

_WITHOUT_PAGES = (
    "account.EmailAddress",
    "mfa.Authenticator",
    "socialaccount.SocialAccount",
    "socialaccount.SocialApp",
    "socialaccount.SocialToken",
)


class AdminConfig(apps.AdminConfig):
    """Django's admin with Cadastre's admin site."""

    default_site = "ipam_site.site.Site"

    def ready(self) -> None:
        super().ready()
        admin.site.unregister([installed.get_model(name) for name in _WITHOUT_PAGES])
