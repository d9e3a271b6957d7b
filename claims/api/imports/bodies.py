"""What a POST of an import says: a multipart form with a file, or JSON with rows or a pasted text."""

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

LARGEST = formats.LARGEST
_AROUND = 64 * 1024  # bytes of a form beside its file
FORM = "multipart/form-data"
_WHERE = ("network", "mapping", "cluster", "namespace", "target", "commit", "skip_bad")


def refuse_large(request: HttpRequest) -> None:
    """Before a byte of the body is read."""
    if int(request.META.get("CONTENT_LENGTH") or 0) > LARGEST + _AROUND:
        error = errors.InvalidInput.for_field(
            "file", "too_large", f"a file has at most {LARGEST} bytes"
        )
        raise error


def read(request: Request) -> tuple[Upload, ImportOptions, bytes]:
    """What is imported, whereto, and what tells this body from another one."""
    kind = parsing.media_type(request)
    if kind == FORM:
        upload, values = _form(request)
    elif kind == parsing.JSON:
        upload, values = _json(request)
    else:
        message = f"Send {FORM} with a part `file`, or {parsing.JSON}."
        raise exceptions.UnsupportedMediaType(request.META.get("CONTENT_TYPE", ""), message)
    options = _options(request, values, upload)
    fingerprint = b""
    if "HTTP_IDEMPOTENCY_KEY" in request.META:
        text = repr(sorted((name, str(value)) for name, value in values.items()))
        fingerprint = hashlib.sha256(text.encode() + b"\0" + upload.to_bytes()).digest()
    return upload, options, fingerprint


def _form(request: Request) -> tuple[Upload, dict[str, Any]]:
    plain = request._request
    _check_parts(plain)
    file = plain.FILES.get("file")
    if file is None:
        raise errors.InvalidInput.for_field("file", "required", "send the file as the part `file`")
    if (file.size or 0) > LARGEST:
        message = f"a file has at most {LARGEST} bytes"
        raise errors.InvalidInput.for_field("file", "too_large", message)
    values: dict[str, Any] = {name: value for name, value in plain.POST.items() if value != ""}
    return Upload("file", file.file, file.name or ""), values


def _check_parts(plain: HttpRequest) -> None:
    """Each part is known, and there once."""
    report = object_reader.ProblemReport()
    known_names = ", ".join(("file", *_WHERE))
    for name in {*plain.POST, *plain.FILES}:
        if (name == "file") is not (name in plain.FILES) or name not in {"file", *_WHERE}:
            report.add(name, "unknown_field", f"unknown field; known here: {known_names}")
        elif len(plain.POST.getlist(name)) + len(plain.FILES.getlist(name)) > 1:
            report.add(name, "repeated", "is given more than once")
    report.raise_any()


def _json(request: Request) -> tuple[Upload, dict[str, Any]]:
    data = documents.load_json(request._request.body, limit=LARGEST)
    body = object_reader.Fields(data, "", object_reader.ProblemReport())
    body.only("rows", "text", *_WHERE)
    body.report.raise_any()
    if body.has("rows") == body.has("text"):
        message = "send rows, or a text that was pasted: one of them"
        raise errors.InvalidInput.for_field("rows", "required", message)
    kind = "rows" if body.has("rows") else "text"
    content = data[kind]
    if not isinstance(content, list if kind == "rows" else str):
        message = "a list is expected" if kind == "rows" else "a text is expected"
        raise errors.InvalidInput.for_field(kind, "wrong_type", message, content)
    values = {name: data[name] for name in _WHERE if data.get(name) is not None}
    return Upload(kind, content), values


def _options(request: Request, values: Mapping[str, Any], upload: Upload) -> ImportOptions:
    report = object_reader.ProblemReport()

    def parse(name: str, parser: Callable[[Any, str], Any], default: Any) -> Any:
        with report.collecting():
            return parser(values[name], name) if name in values else default
        return default

    target = parse("target", _target, ImportTarget.IPPOOL.value)
    network = parse("network", network_of(request), None)
    namespace = parse("namespace", parsing.namespace, "")
    commit, skip_bad = parse("commit", _flag, False), parse("skip_bad", _flag, False)
    mapping = parse("mapping", mapping_of, {})
    cluster = parse("cluster", scoped.cluster(request), None)
    report.raise_any()
    to = _cluster(request, cluster, network, mapping)
    if to is None:
        raise _nowhere(request, upload)
    return ImportOptions(
        to,
        target=target,
        network=network,
        namespace=namespace,
        mapping=mapping,
        commit=commit,
        skip_bad=skip_bad,
        user=request.user,
        limited=drafts.is_limited(request.user, target),
    )


def _cluster(
    request: Request,
    chosen_cluster: Cluster | None,
    network: Network | None,
    mapping: Mapping[str, Any],
) -> Cluster | None:
    cluster = chosen_cluster or (network.cluster if network else None)
    if network is not None and cluster is not None and network.cluster_id != cluster.pk:
        message = f"the network {network.name} is one of {network.cluster}"
        raise errors.InvalidInput.for_field("network", "unknown_network", message)
    for name, to in mapping.items():
        if cluster is None and isinstance(to, Mapping) and to.get("network") is not None:
            path = f"mapping.{errors.shown(name)}.network"
            cluster = network_of(request)(to["network"], path).cluster
    return cluster


def _nowhere(request: Request, upload: Upload) -> errors.InvalidInput:
    """A program says where to; what the addresses tell is offered."""
    message = "say where to: the id of a network, a mapping of port groups, or a cluster"
    network = networks.find_by_addresses(upload, request.user)
    if network is not None:
        message += (
            f"; of the networks that can hold static VMs only {network.name} ({network.pk}) has all of these"
            " addresses in its subnets"
        )
    return errors.InvalidInput.for_field("network", "required", message)


def network_of(request: Request) -> Callable[[Any, str], Network]:
    """A parser of the id of a network that whoever asks sees."""

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


def mapping_of(value: Any, path: str) -> dict[str, Any]:
    """The mapping as an object, or as the JSON text of one; import_mapping.parse reads on.

    Of each port group the id of its network, or an object.
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
        name: import_mapping.parse_destination(to, f"{path}.{errors.shown(name)}")
        for name, to in value.items()
    }


def _target(value: Any, path: str) -> str:
    return parsing.choice(value, path, tuple(ImportTarget.values))


def namespace_of(value: Any, path: str) -> str:
    """A namespace, or "" for none."""
    return "" if value == "" else parsing.namespace(value, path)


def _flag(value: Any, path: str) -> bool:
    return query.flag(value, path) if isinstance(value, str) else flag(value, path)


def flag(value: Any, path: str) -> bool:
    if not isinstance(value, bool):
        raise errors.InvalidInput.for_field(path, "wrong_type", "must be true or false", value)
    return value
