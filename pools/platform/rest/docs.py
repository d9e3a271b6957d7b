"""The API documentation in a browser: Swagger UI from the installed package, without another host."""

from __future__ import annotations

from django.contrib.auth.views import redirect_to_login
from django.http.response import HttpResponseBase
from django.urls import reverse
from drf_spectacular.views import SpectacularSwaggerSplitView
from rest_framework import exceptions


class Docs(SpectacularSwaggerSplitView):
    """The view with a separate start script, because the content security policy refuses inline scripts."""

    title = "API reference | Cadastre"
    url_name = "api:schema"
    template_name = "cadastre/api_docs.html"
    # OPTIONS would render the page's template, which needs the page's context.
    http_method_names = ["get", "head"]

    def handle_exception(self, exc: Exception) -> HttpResponseBase:  # type: ignore[override]  # also a redirect
        """Lead a browser without a session to the sign-in page."""
        if isinstance(exc, exceptions.NotAuthenticated) and self.request.method in {"GET", "HEAD"}:
            return redirect_to_login(self.request.get_full_path(), reverse("admin:login"))
        return super().handle_exception(exc)
