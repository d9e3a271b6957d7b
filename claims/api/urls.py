"""The addresses of VM networks below /api/v1/; each part names its own."""

from __future__ import annotations

from django.urls import URLPattern

from claims.api import ipamclaims, ippools, memberships, networks, waves, webhooks, workloads
from claims.api.imports import imports

app_name = "claims-api"
urlpatterns: list[URLPattern] = [
    *imports.urlpatterns,
    *ipamclaims.urlpatterns,
    *ippools.urlpatterns,
    *memberships.urlpatterns,
    *networks.urlpatterns,
    *waves.urlpatterns,
    *webhooks.urlpatterns,
    *workloads.urlpatterns,
]
