"""The admin site: django-unfold's, with the pages that belong to no table."""

from __future__ import annotations

from django.urls import URLPattern
from unfold import sites


class Site(sites.UnfoldAdminSite):
    index_title = "Overview"
    index_template = "cadastre/overview.html"

    def extra_urls(self) -> list[URLPattern]:
        """Addresses directly below /admin/."""
        from pools.admin import urls  # noqa: PLC0415  # its modules register with this site

        return urls.of(self)
