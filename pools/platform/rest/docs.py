"""The API documentation in a browser: Swagger UI from the installed package, without another host."""

from __future__ import annotations

from drf_spectacular.views import SpectacularSwaggerSplitView


class Docs(SpectacularSwaggerSplitView):
    """The split view: the policy refuses inline scripts, so the start script is a request of its own."""

    url_name = "api:schema"
    template_name = "cadastre/api_docs.html"
    # OPTIONS would be answered through the page's template, which needs the page's context.
    http_method_names = ["get", "head"]
