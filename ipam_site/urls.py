"""URL patterns of the site, except /healthz and /readyz (ipam_site.http.health)."""

from django.contrib import admin
from django.templatetags.static import static
from django.urls import URLPattern, URLResolver, include, path
from django.views.decorators import http
from django.views.generic import base

from ipam_site.http import metrics
from ipam_site.sign_on import oidc, urls as second_factor

_ICON = base.RedirectView.as_view(url=static("cadastre/icon.svg"))

urlpatterns: list[URLPattern | URLResolver] = [
    path("", http.require_safe(base.RedirectView.as_view(pattern_name="admin:index")), name="home"),
    # Browsers request it for pages without an icon of their own.
    path("favicon.ico", http.require_safe(_ICON), name="favicon"),
    path("metrics", metrics.by_session),
    path("sign-on/", oidc.start, name="sign_on"),
    path(
        "sign-on/callback/",
        oidc.callback,
        {"provider_id": oidc.PROVIDER},
        name="openid_connect_callback",
    ),
    path("admin/", include(second_factor.urlpatterns)),
    path("admin/", admin.site.urls),
    path("admin/", include(second_factor.admin_names)),
    path("api/v1/", include("pools.api.urls")),
    path("api/v1/", include("claims.api.urls")),
    path("webhooks/v1/", include("pools.webhooks.views")),
    path("webhooks/v1/", include("claims.webhooks.hooks")),
]
handler400 = "ipam_site.http.problems.bad_request"
handler403 = "ipam_site.http.problems.permission_denied"
handler404 = "ipam_site.http.problems.page_not_found"
handler500 = "ipam_site.http.problems.server_error"
