from typing import Any

from django.apps import AppConfig, apps as installed
from django.contrib import admin
from django.contrib.admin import apps
from django.core import checks, exceptions
from django.db import connections
from django.db.backends import signals
from django.db.models.signals import pre_migrate

from ipam_site import checks as site_checks, database_url


class SiteConfig(AppConfig):
    name = "ipam_site"
    verbose_name = "Cadastre"

    def ready(self) -> None:
        checks.register(site_checks.key_ring, deploy=True)
        checks.register(site_checks.sign_on)
        signals.connection_created.connect(database_url.check_first_connection)
        pre_migrate.connect(_require_schema, sender=self)


def _require_schema(using: str, **_: Any) -> None:
    """Refuse to migrate where the tables could not be in the schema public, before anything is written."""
    with connections[using].cursor() as cursor:
        cursor.execute(
            "SELECT current_schema(), has_schema_privilege(oid, 'CREATE')"
            " FROM (SELECT to_regnamespace('public')::oid AS oid) AS public"
        )
        [(schema, may_create)] = cursor.fetchall()
    if schema != "public" or not may_create:
        raise exceptions.ImproperlyConfigured(
            f"The tables of Cadastre are in the schema public. This database user creates tables in {schema or 'none'}:"
            " remove search_path from DATABASE_URL and from the user's settings, and"
            " GRANT CREATE, USAGE ON SCHEMA public TO the user, or make it the owner of the database"
            " (docs/how-to/deploy.md)."
        )


_WITHOUT_PAGES = (
    "account.EmailAddress",
    "mfa.Authenticator",
    "socialaccount.SocialAccount",
    "socialaccount.SocialApp",
    "socialaccount.SocialToken",
)


class AdminConfig(apps.AdminConfig):
    """Django's admin with Cadastre's admin site, without the pages of tables that no administrator has to edit."""

    default = False  # ipam_site's own configuration is SiteConfig

    default_site = "ipam_site.site.Site"

    def ready(self) -> None:
        super().ready()
        admin.site.unregister([installed.get_model(name) for name in _WITHOUT_PAGES])
