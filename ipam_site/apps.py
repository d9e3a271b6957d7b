from django.apps import AppConfig


class SiteConfig(AppConfig):
    name = "ipam_site"
    verbose_name = "Cadastre"
