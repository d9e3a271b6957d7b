from django.apps import AppConfig
from django.core import checks
from django.db.backends import signals

from ipam_site import checks as site_checks
from ipam_site import pooler


class SiteConfig(AppConfig):
    name = "ipam_site"
    verbose_name = "Cadastre"

    def ready(self) -> None:
        checks.register(site_checks.key_ring, deploy=True)
        checks.register(site_checks.sign_on)
        signals.connection_created.connect(pooler.check_first_connection)
