from django.apps import AppConfig
from django.core import checks

from ipam_site import checks as site_checks


class SiteConfig(AppConfig):
    name = "ipam_site"
    verbose_name = "Cadastre"

    def ready(self) -> None:
        checks.register(site_checks.key_ring, deploy=True)
        checks.register(site_checks.sign_on)
