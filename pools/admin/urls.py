"""Pages of the admin that belong to no table."""

from __future__ import annotations

from typing import Any

from django.urls import URLPattern, path

from pools.admin import find, imports


def of(site: Any) -> list[URLPattern]:
    """Below /admin/, in the site's own name space."""
    return [
        path("find/", site.admin_view(find.view), name="find"),
        path("import/", site.admin_view(imports.view), name="import"),
    ]
