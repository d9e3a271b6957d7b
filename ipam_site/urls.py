"""All addresses of the site; /healthz and /readyz are answered before, by ipam_site.health."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, path
from django.views.generic import base

urlpatterns: list[URLPattern | URLResolver] = [
    path("", base.RedirectView.as_view(pattern_name="admin:index"), name="home"),
    path("admin/", admin.site.urls),
]
