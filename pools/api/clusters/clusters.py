"""clusters/: register a cluster and, if it has a prefix, its node and instance pools."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from pools.api import lookups
from pools.api.schemas import endpoints
from pools.core import addresses, errors, object_reader
from pools.models import Cluster
from pools.platform import events, idempotency
from pools.platform.rest import pagination, parsing, query, views
from pools.register import clusters

_SETTINGS = ("description", "instance_gateway", "instance_mtu", "instance_dns", "cluster_prefix")


class Clusters(views.View):
    needs = {"GET": ("pools.view_cluster",), "POST": ("pools.add_cluster",)}

    @extend_schema(**endpoints.CLUSTERS)
    def get(self, request: Request) -> views.Answer:
        parameters = query.Query(request)
        rows = Cluster.objects.all()
        if name := parameters.text("name"):
            rows = rows.filter(name=name)
        return views.answer(
            pagination.page(
                request,
                parameters,
                rows,
                orderings={"id": ("id",), "name": ("name",)},
                fields=endpoints.CLUSTER_FIELDS,
                shape=shapes,
            )
        )

    @extend_schema(**endpoints.CLUSTER_CREATE)
    def post(self, request: Request) -> views.Answer:
        body = parsing.fields(
            request, "name", "cluster_prefix", "node_prefix", "instance_prefix", "description"
        )
        settings = _creation_settings(body)
        stored = views.run_once(request, lambda: _create(settings, views.author(request)))
        return views.answer(stored.answer, status=stored.status)


class ClusterView(views.View):
    needs = {
        "GET": ("pools.view_cluster",),
        "PATCH": ("pools.change_cluster",),
        "DELETE": ("pools.delete_cluster",),
    }

    @extend_schema(**endpoints.CLUSTER)
    def get(self, request: Request, cluster: str) -> views.Answer:
        return views.answer(shape(get(cluster)))

    @extend_schema(**endpoints.CLUSTER_PATCH)
    def patch(self, request: Request, cluster: str) -> views.Answer:
        body = parsing.fields(request, *_SETTINGS)
        row = get(cluster)
        changes = _changes(body)
        if "cluster_prefix" in changes:
            views.require(request, "pools.add_pool")
        return views.answer(shape(clusters.change(row, changes, author=views.author(request))))

    @extend_schema(**endpoints.CLUSTER_DELETE)
    def delete(self, request: Request, cluster: str) -> views.Answer:
        parameters = query.Query(request)
        force = bool(parameters.parse("force", query.flag))
        reason = parameters.parse("reason", parsing.reason) or ""
        parameters.done()
        if force:
            views.require(request, "pools.force_release")
        clusters.remove(get(cluster), author=views.author(request, reason), force=force)
        return views.no_content()


def get(value: str) -> Cluster:
    """Return the cluster with this name or id. Raises NotFound."""
    cluster = lookups.find_cluster(value)
    if cluster is None:
        raise errors.NotFound("There is no such cluster.")
    return cluster


def shape(cluster: Cluster) -> dict[str, Any]:
    return shapes([cluster.__dict__])[0]


def shapes(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            "id": row["id"],
            "name": row["name"],
            "cluster_prefix": str(row["cluster_prefix"]) if row["cluster_prefix"] else None,
            "instance_gateway": str(row["instance_gateway"]),
            "instance_mtu": row["instance_mtu"],
            "instance_dns": [str(server) for server in row["instance_dns"]],
            "description": row["description"],
            "created_at": row["created_at"].isoformat().replace("+00:00", "Z"),
        }
        for row in rows
    ]


def _create(settings: dict[str, Any], author: events.Author) -> idempotency.Stored:
    return idempotency.Stored(201, shape(clusters.create(author=author, **settings)))


def _creation_settings(body: object_reader.Fields) -> dict[str, Any]:
    settings: dict[str, Any] = {"name": body.parse("name", parsing.name)}
    for field in ("cluster_prefix", "node_prefix", "instance_prefix"):
        if body.has(field):
            settings[field] = body.parse(field, _prefix)
    if body.has("description"):
        settings["description"] = body.parse("description", parsing.description)
    body.report.raise_any()
    return settings


def _changes(body: object_reader.Fields) -> dict[str, Any]:
    parsers: dict[str, Callable[[object, str], Any]] = {
        "cluster_prefix": _prefix,
        "description": parsing.description,
        "instance_gateway": _address,
        "instance_mtu": partial(parsing.integer, least=1280, most=65535),
        "instance_dns": _addresses,
    }
    for name in _SETTINGS:
        if name in body.data and not body.has(name):
            body.report.add(name, "wrong_type", "null is no value of this field")
    changes = {name: body.parse(name, parsers[name]) for name in _SETTINGS if body.has(name)}
    body.report.raise_any()
    return changes


def _prefix(value: object, field: str) -> Any:
    prefix = addresses.parse_cidr(value, field=field)
    if prefix.version != 6:
        raise errors.InvalidInput.for_field(
            field, "cluster_prefix", "an IPv6 prefix is expected", value
        )
    return prefix


def _address(value: object, field: str) -> str:
    return str(addresses.parse_address(value, field=field))


def _addresses(value: object, field: str) -> list[str]:
    if not isinstance(value, list) or len(value) > 16:
        raise errors.InvalidInput.for_field(
            field, "wrong_type", "a list of addresses is expected", value
        )
    return [_address(address, f"{field}.{index}") for index, address in enumerate(value)]
