from django.contrib.admin import apps


class AdminConfig(apps.AdminConfig):
    """Django's admin with Cadastre's admin site."""

    default_site = "ipam_site.site.Site"
