"""Below /webhooks/v1/; the key in a path is a secret (ipam_site/logs.py hides it)."""

from django.urls import URLPattern, path

from pools.webhooks import views

_VALIDATE = views.ValidateCiliumPodIPPools.as_view()

urlpatterns: list[URLPattern] = [
    path("<str:cluster>/validate-ciliumpodippools", _VALIDATE),
    path("<str:cluster>/<str:key>/validate-ciliumpodippools", _VALIDATE),
]
