"""Request bodies of new imports: a multipart form with a file, or JSON with rows or a pasted text."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from django.http import HttpRequest
from rest_framework import exceptions
from rest_framework.request import Request

from claims.api import scoped
from claims.imports import drafts, networks
from claims.imports import mapping as import_mapping
from claims.imports.files import formats
from claims.imports.mapping import ImportOptions
from claims.imports.uploads import Upload
from claims.models import Network
from claims.models.imports import ImportTarget
from pools.core import errors, object_reader
from pools.models import Cluster
from pools.platform import documents
from pools.platform.rest import parsing, query

LARGEST_FILE = formats.LARGEST
_FORM_OVERHEAD = 64 * 1024  # bytes of a form in addition to its file
FORM = "multipart/form-data"
_OPTION_FIELDS = ("network", "mapping", "cluster", "namespace", "target", "commit", "skip_bad")


def refuse_large(request: HttpRequest) -> None:
    """Raise InvalidInput if the body is too large, by its Content-Length and before it is read."""
    if int(request.META.get("CONTENT_LENGTH") or 0) > LARGEST_FILE + _FORM_OVERHEAD:
        error = errors.InvalidInput.for_field(
            "file", "too_large", f"a file has at most {LARGEST_FILE} bytes"
        )
        raise error


def read(request: Request) -> tuple[Upload, ImportOptions, bytes]:
    """Return the upload, its options, and a digest of the body for the idempotency key ("" without a key)."""
    kind = parsing.media_type(request)
    if kind == FORM:
        upload, values = _read_form(request)
    elif kind == parsing.JSON:
        upload, values = _read_json(request)
    else:
        message = f"Send {FORM} with a part `file`, or {parsing.JSON}."
        raise exceptions.UnsupportedMediaType(request.META.get("CONTENT_TYPE", ""), message)
    options = _parse_options(request, values, upload)
    fingerprint = b""
    if "HTTP_IDEMPOTENCY_KEY" in request.META:
        text = repr(sorted((name, str(value)) for name, value in values.items()))
        fingerprint = hashlib.sha256(text.encode() + b"\0" + upload.to_bytes()).digest()
    return upload, options, fingerprint


def _read_form(request: Request) -> tuple[Upload, dict[str, Any]]:
    django_request = request._request
    _check_parts(django_request)
    file = django_request.FILES.get("file")
    if file is None:
        raise errors.InvalidInput.for_field("file", "required", "send the file as the part `file`")
    if (file.size or 0) > LARGEST_FILE:
        message = f"a file has at most {LARGEST_FILE} bytes"
        raise errors.InvalidInput.for_field("file", "too_large", message)
    values: dict[str, Any] = {
        name: value for name, value in django_request.POST.items() if value != ""
    }
    return Upload("file", file.file, file.name or ""), values


def _check_parts(django_request: HttpRequest) -> None:
    """Raise InvalidInput if a part is unknown or given more than once."""
    report = object_reader.ProblemReport()
    field_names = ", ".join(("file", *_OPTION_FIELDS))
    for name in {*django_request.POST, *django_request.FILES}:
        if (name == "file") is not (name in django_request.FILES) or name not in {
            "file",
            *_OPTION_FIELDS,
        }:
            report.add(name, "unknown_field", f"unknown field; known here: {field_names}")
        elif len(django_request.POST.getlist(name)) + len(django_request.FILES.getlist(name)) > 1:
            report.add(name, "repeated", "is given more than once")
    report.raise_any()


def _read_json(request: Request) -> tuple[Upload, dict[str, Any]]:
    data = documents.load_json(request._request.body, limit=LARGEST_FILE)
    body = object_reader.Fields(data, "", object_reader.ProblemReport())
    body.allow_only("rows", "text", *_OPTION_FIELDS)
    body.report.raise_any()
    if body.has("rows") == body.has("text"):
        message = "send either rows or text"
        raise errors.InvalidInput.for_field("rows", "required", message)
    kind = "rows" if body.has("rows") else "text"
    content = data[kind]
    if not isinstance(content, list if kind == "rows" else str):
        message = "a list is expected" if kind == "rows" else "a string is expected"
        raise errors.InvalidInput.for_field(kind, "wrong_type", message, content)
    values = {name: data[name] for name in _OPTION_FIELDS if data.get(name) is not None}
    return Upload(kind, content), values


def _parse_options(request: Request, values: Mapping[str, Any], upload: Upload) -> ImportOptions:
    report = object_reader.ProblemReport()

    def parse(name: str, parser: Callable[[Any, str], Any], default: Any) -> Any:
        with report.collect():
            return parser(values[name], name) if name in values else default
        return default

    target = parse("target", _parse_target, ImportTarget.IPPOOL.value)
    network = parse("network", network_parser(request), None)
    namespace = parse("namespace", parsing.namespace, "")
    commit, skip_bad = (
        parse("commit", _parse_form_flag, False),
        parse("skip_bad", _parse_form_flag, False),
    )
    mapping = parse("mapping", parse_mapping, {})
    cluster = parse("cluster", scoped.cluster_parser(request), None)
    report.raise_any()
    target_cluster = _target_cluster(request, cluster, network, mapping)
    if target_cluster is None:
        raise _missing_target_error(request, upload)
    return ImportOptions(
        target_cluster,
        target=target,
        network=network,
        namespace=namespace,
        mapping=mapping,
        commit=commit,
        skip_bad=skip_bad,
        user=request.user,
        limited=drafts.is_limited(request.user, target),
    )


def _target_cluster(
    request: Request,
    chosen_cluster: Cluster | None,
    network: Network | None,
    mapping: Mapping[str, Any],
) -> Cluster | None:
    cluster = chosen_cluster or (network.cluster if network else None)
    if network is not None and cluster is not None and network.cluster_id != cluster.pk:
        message = f"the network {network.name} belongs to the cluster {network.cluster}"
        raise errors.InvalidInput.for_field("network", "unknown_network", message)
    for name, destination in mapping.items():
        if (
            cluster is None
            and isinstance(destination, Mapping)
            and destination.get("network") is not None
        ):
            path = f"mapping.{errors.display_value(name)}.network"
            cluster = network_parser(request)(destination["network"], path).cluster
    return cluster


def _missing_target_error(request: Request, upload: Upload) -> errors.InvalidInput:
    """Return the error for a missing target; it proposes the only network that matches the addresses."""
    message = "name the target: the id of a network, a mapping of port groups, or a cluster"
    network = networks.find_by_addresses(upload, request.user)
    if network is not None:
        message += (
            f"; the only network with static VM support whose subnets contain all addresses is"
            f" {network.name} ({network.pk})"
        )
    return errors.InvalidInput.for_field("network", "required", message)


def network_parser(request: Request) -> Callable[[Any, str], Network]:
    """Return a parser for the id of a network that the user may see."""

    def parse(value: Any, path: str) -> Network:
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 18:
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise errors.InvalidInput.for_field(
                path, "wrong_type", "the id of a network is expected", value
            )
        network = None
        if 0 < value < 1 << 62:
            rows = scoped.rows(request, Network).select_related("cluster")
            network = rows.filter(pk=value).first()
        if network is None:
            raise errors.InvalidInput.for_field(
                path, "unknown_network", "there is no such network", value
            )
        return network

    return parse


def parse_mapping(value: Any, path: str) -> dict[str, Any]:
    """Parse the mapping of port groups, an object or its JSON text.

    Each value is the id of a network, or an object with `network` and `namespace`. Only its form is
    checked here; `import_mapping` resolves the networks.
    """
    if isinstance(value, str):
        value = documents.load_json_value(value.encode())
    if not isinstance(value, dict):
        message = (
            'an object {"port group": id of a network} or {"port group": {"network": id, "namespace":'
            ' ""}} is expected'
        )
        raise errors.InvalidInput.for_field(path, "wrong_type", message, value)
    return {
        name: import_mapping.parse_destination(destination, f"{path}.{errors.display_value(name)}")
        for name, destination in value.items()
    }


def _parse_target(value: Any, path: str) -> str:
    return parsing.choice(value, path, tuple(ImportTarget.values))


def parse_namespace(value: Any, path: str) -> str:
    """Parse a namespace; "" stands for none."""
    return "" if value == "" else parsing.namespace(value, path)


def _parse_form_flag(value: Any, path: str) -> bool:
    return query.flag(value, path) if isinstance(value, str) else parse_flag(value, path)


def parse_flag(value: Any, path: str) -> bool:
    if not isinstance(value, bool):
        raise errors.InvalidInput.for_field(path, "wrong_type", "must be true or false", value)
    return value
