"""The API documentation in a browser: Swagger UI from the installed package, without another host."""

from __future__ import annotations

from drf_spectacular.views import SpectacularSwaggerSplitView


class Docs(SpectacularSwaggerSplitView):
    """The view with a separate start script, because the content security policy refuses inline scripts."""

    title = "API reference | Cadastre"
    url_name = "api:schema"
    template_name = "cadastre/api_docs.html"
    # OPTIONS would render the page's template, which needs the page's context.
    http_method_names = ["get", "head"]
