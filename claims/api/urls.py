"""The addresses of VM networks below /api/v1/; each part names its own."""

from __future__ import annotations

from django.urls import URLPattern

app_name = "claims-api"
urlpatterns: list[URLPattern] = []
