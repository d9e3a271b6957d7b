"""A pool as YAML (all formats or that of a cluster), Helm values and API requests."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django import forms
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext, gettext_lazy as _

from pools.admin.clusters import field as cluster_fields
from pools.core import errors
from pools.core.cilium import podippool
from pools.models import Category, Cluster, Pool
from pools.register import manifests

_NAMES = {
    podippool.Shape.V2.value: _("CiliumPodIPPool, cilium.io/v2 (Cilium release)"),
    podippool.Shape.V2_PROPOSAL.value: _("CiliumPodIPPool, cilium.io/v2 with reservedRange"),
    podippool.Shape.V2ALPHA1.value: _("CiliumPodIPPool, cilium.io/v2alpha1"),
    manifests.HELM: _("Helm values, autoCreateCiliumPodIPPools"),
}
# Bodies that the pool takes: an instance and a public IPv4 address need their owner.
_NODE = {"holder": {"kind": "node", "id": "worker-1"}}
_DEMANDS = {
    Category.POD: _NODE,
    Category.NODE: _NODE,
    Category.INSTANCE: {"holder": {"kind": "instance", "id": "i-1"}, "org": "acme", "env": "shop"},
    Category.IPV4: {"holder": {"kind": "env", "id": "shop"}, "org": "acme"},
    Category.VM: {"holder": {"kind": "vm", "id": "web-1"}},
}


@dataclass(frozen=True)
class RenderedManifest:
    """A manifest in one format, or the reason why the format cannot hold the pool; `url` downloads it."""

    name: str
    text: str = ""
    why_not: str = ""
    url: str = ""


class ShapeForm(forms.Form):
    cluster = cluster_fields.cluster_field(
        queryset=Cluster.objects.exclude(connection=None),
        label=_("Format for cluster"),
        empty_label=_("all formats"),
        required=False,
    )


def context(request: HttpRequest, pool: Pool) -> dict[str, Any]:
    """Return all formats, or that of the cluster in the query string, and requests, for `pool_yaml.html`."""
    form = ShapeForm(request.GET)
    cluster = form.cleaned_data["cluster"] if form.is_valid() else None
    cluster_field: Any = form.fields["cluster"]
    is_pod = pool.category == Category.POD
    shapes = (
        [_render_for_cluster(pool, cluster)]
        if cluster
        else [_render(pool, shape) for shape in _NAMES]
    )
    return {
        "shape_form": form if is_pod and cluster_field.queryset.exists() else None,
        "manifests": shapes if is_pod else [],
        "calls": _calls(pool, request.build_absolute_uri("/").rstrip("/")),
    }


def _render(pool: Pool, shape: str) -> RenderedManifest:
    name = str(_NAMES[shape])
    try:
        text = manifests.render_yaml([manifests.pool_manifest(pool)], shape)
    except errors.InvalidInput as error:
        return RenderedManifest(name, why_not=error.message)
    return RenderedManifest(
        name, text, url=reverse("api:manifest", args=[pool.pk], query={"shape": shape})
    )


def _render_for_cluster(pool: Pool, cluster: Cluster) -> RenderedManifest:
    try:
        return _render(pool, manifests.fetch_shape(cluster).value)
    except errors.IpamError as error:
        return RenderedManifest(
            gettext("CiliumPodIPPool in the format of %(cluster)s") % {"cluster": cluster},
            why_not=error.message,
        )


def _calls(pool: Pool, here: str) -> list[tuple[str, str]]:
    allocation = json.dumps(_DEMANDS[Category(pool.category)])
    head = 'curl -H "Authorization: Bearer $TOKEN"'  # no text: a command
    return [
        (gettext("Read this pool"), f"{head} {here}/api/v1/pools/{pool.pk}/"),
        (gettext("List its blocks"), f"{head} '{here}/api/v1/blocks/?pool={pool.pk}'"),
        (
            gettext("Allocate"),
            f"{head} -H 'Content-Type: application/json' \\\n  -d '{allocation}' \\\n"
            f"  {here}/api/v1/pools/{pool.pk}/allocations/",  # no text: a command
        ),
    ]
