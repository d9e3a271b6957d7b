"""URLs of VM networks below /api/v1/; each module has its own list."""

from django.urls import URLPattern, URLResolver

from claims.api import ipamclaims, ippools, memberships, networks, waves, webhooks, workloads
from claims.api.imports import views as imports

app_name = "claims-api"
urlpatterns: list[URLPattern | URLResolver] = [
    *imports.urlpatterns,
    *ipamclaims.urlpatterns,
    *ippools.urlpatterns,
    *memberships.urlpatterns,
    *networks.urlpatterns,
    *waves.urlpatterns,
    *webhooks.urlpatterns,
    *workloads.urlpatterns,
]
