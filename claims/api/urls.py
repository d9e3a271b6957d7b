"""The endpoints of VM networks below /api/v1/."""

from django.urls import URLPattern, URLResolver

from claims.api import (
    entries,
    ipamclaims,
    ippools,
    memberships,
    networks,
    waves,
    webhooks,
    workloads,
)
from claims.api.imports import views as imports
from pools.platform.rest.generics import endpoints, routes

_NETWORK = "networks/<int:network_id>"

app_name = "claims-api"
urlpatterns: list[URLPattern | URLResolver] = [
    *imports.urlpatterns,
    *routes(
        ("ipamclaims", ipamclaims.IPAMClaims, "ipamclaims", "ipamclaim"),
        ("ippools", ippools.IPPools, "ippools", "ippool"),
        ("ippools/<int:ippool_id>/entries", entries.Entries, "entries", "entry"),
        ("memberships", memberships.Memberships, "memberships", "membership"),
        ("networks", networks.Networks, "networks", "network"),
        (f"{_NETWORK}/workloads", workloads.Workloads, "network-workloads", "network-workload"),
        ("waves", waves.Waves, "waves", "wave"),
        ("waves/<int:wave_id>/vms", waves.WaveVMs, "wave-vms", "wave-vm"),
        ("decisions", webhooks.Decisions, "decisions", "decision"),
    ),
    *endpoints(
        f"{_NETWORK}/",
        ("addresses-for-mac/", ippools.AddressesForMAC, "addresses-for-mac"),
        ("vm-manifest/", ipamclaims.VMManifest, "vm-manifest"),
    ),
    *endpoints(
        "clusters/<str:cluster>/", ("network-settings/", webhooks.Settings, "network-settings")
    ),
]
