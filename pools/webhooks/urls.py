"""Endpoints below /webhooks/v1/; the key in a path is a secret, which ipam_site/logs.py redacts."""

from django.urls import URLPattern, path

from pools.webhooks import views

_VALIDATE = views.ValidateCiliumPodIPPools.as_view()

urlpatterns: list[URLPattern] = [
    path("<str:cluster>/validate-ciliumpodippools", _VALIDATE),
    path("<str:cluster>/<str:key>/validate-ciliumpodippools", _VALIDATE),
]
