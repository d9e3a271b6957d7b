"""The webhooks of VM networks below /webhooks/v1/, each with and without the cluster's key."""

from __future__ import annotations

from django.urls import URLPattern, path

from claims.webhooks import ippools, mutations

_VIEWS = {
    "mutate-pods": mutations.MutatePods.as_view(),
    "mutate-vms": mutations.MutateVMs.as_view(),
    "validate-ippools": ippools.ValidateIPPools.as_view(),
}
urlpatterns: list[URLPattern] = [
    path(f"<str:cluster>/{key}{name}", view)
    for name, view in _VIEWS.items()
    for key in ("", "<str:key>/")
]
