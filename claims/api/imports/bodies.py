"""Requests of imports: forms, and the target of a new import."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request

from claims.api.imports.serializers import find_network, unknown_network
from claims.imports import drafts, mapping
from claims.imports.drafts import Upload
from claims.imports.mapping import ImportOptions
from pools.core import errors
from pools.models import Cluster
from pools.platform.rest import imports, parsing


def is_empty_form(request: Request) -> bool:
    """Return True for an empty multipart form, which some clients send instead of no body."""
    form = request._request
    return parsing.media_type(request) == imports.FORM and not (form.POST or form.FILES)


def form_identity(request: Request, upload: Upload) -> bytes:
    """Return what an Idempotency-Key is bound to: the boundary of a form differs in each request."""
    return repr(sorted(request._request.POST.items())).encode() + b"\0" + upload.to_bytes()


def import_options(request: Request, upload: Upload, values: dict[str, Any]) -> ImportOptions:
    """Return the options of an import; they name its cluster, its network or both.

    Raises InvalidInput unknown_network, required; NotAllowed.
    """
    cluster = _target_cluster(request, values)
    if cluster is None:
        raise _missing_target_error(request, upload)
    limited = drafts.is_limited(request.user, values["target"])
    options = {**values, "cluster": cluster, "user": request.user, "limited": limited}
    return ImportOptions(**options)


def _target_cluster(request: Request, values: dict[str, Any]) -> Cluster | None:
    network = values.get("network")
    cluster: Cluster | None = values.get("cluster") or (network.cluster if network else None)
    if network is not None and cluster is not None and network.cluster_id != cluster.pk:
        raise unknown_network("network", network.pk)
    for name, destination in values.get("mapping", {}).items():
        if cluster is None and destination.get("network") is not None:
            try:
                cluster = find_network(request, destination["network"]).cluster
            except errors.InvalidInput as error:
                raise error.under(f"mapping.{errors.display_value(name)}.network") from error
    return cluster


def _missing_target_error(request: Request, upload: Upload) -> errors.InvalidInput:
    """Return the error for a missing target; it proposes the only network that matches the addresses."""
    message = "name the target: the id of a network, a mapping of port groups, or a cluster"
    network = mapping.find_by_addresses(upload, request.user)
    if network is not None:
        message += (
            f"; the only network with static VM support whose subnets contain all addresses is"
            f" {network.name} ({network.pk})"
        )
    return errors.InvalidInput.for_field("network", "required", message)
