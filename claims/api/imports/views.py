"""Endpoints below imports/ that are for imports of VMs only."""

from __future__ import annotations

from django.http import HttpResponse
from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from claims.api import scoped
from claims.api.imports.vm import VMImportSerializer
from claims.imports import drafts, manifests
from claims.models import VMImport
from pools.api.imports.views import ActionView, ImportsView
from pools.platform.rest import views


class ImportMissingAddresses(ActionView):
    only_kinds = (VMImport.KIND,)

    @extend_schema(request=None, responses=VMImportSerializer)
    def post(self, request: Request, import_id: int) -> Response:
        """Give each row that lacks a family of its network the next free address of it."""
        return self.perform(drafts.assign_missing_families)


class ImportManifest(ImportsView):
    only_kinds = (VMImport.KIND,)
    needs = {"GET": ("view",)}

    @extend_schema(responses={(200, "application/yaml"): OpenApiTypes.BINARY})
    def get(self, request: Request, import_id: int) -> views.Answer:
        """The IPPools or IPAMClaims that an import created, as YAML."""
        self.parameters.raise_problems()
        for permission in ("claims.view_entry", "claims.view_ipamclaim"):
            views.require(request, permission)
        vm_import = self.import_of_path
        text = manifests.render_yaml(vm_import, scoped.request_scope(request))
        headers = {"Content-Disposition": f'attachment; filename="import-{vm_import.pk}.yaml"'}
        return HttpResponse(text, content_type="application/yaml", headers=headers)


urlpatterns = [
    path(
        "imports/<int:import_id>/missing-addresses/",
        ImportMissingAddresses.as_view(),
        name="import-missing-addresses",
    ),
    path("imports/<int:import_id>/manifest/", ImportManifest.as_view(), name="import-manifest"),
]
