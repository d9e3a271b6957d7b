"""The addresses of the webhooks of VM networks below /webhooks/v1/."""

from __future__ import annotations

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
