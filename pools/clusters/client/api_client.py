"""The verbs that are spoken to an API server; the only module that imports `kubernetes`.

The official client carries the requests; its models are not used, because raw JSON is several times
faster and keeps fields that the models do not know. An answer is complete, or it is a fault
(pools.platform.outbound.faults): nothing in between, and nothing is tried again in here.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import gc
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent import futures
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self
from urllib import parse

from django.conf import settings

from pools.clusters.client import responses, schemas
from pools.core.kubernetes.resources import Resource
from pools.platform import process_metrics
from pools.platform.outbound import connection_errors, faults, guard, transport
from pools.platform.outbound.access import Access

if TYPE_CHECKING:
    import urllib3

Manifest = dict[str, Any]
Body = Manifest | list[Manifest] | bytes
Projection = Callable[[Manifest], Manifest | None]

PAGE = 500  # objects
MOST_PAGES = 10_000  # then the server goes in circles
_STARTS = 3  # of a list whose `continue` expires
_WHOLE_ANSWER = 4  # times the read time-out
_WATCH_GRACE = 15  # seconds after which a server that should have ended a watch is taken for dead
_APPLY = "application/apply-patch+yaml"
_JSON_PATCH = "application/json-patch+json"
_VERBS = {"GET": "get", "POST": "create", "PATCH": "apply", "PUT": "update", "DELETE": "delete"}
_TOKEN = re.compile(rb'"continue": ?"([\w=-]+)"')  # of an API server; others are found when parsed
_METADATA = 4096  # bytes at the ends of a page in which it is looked for
# The server reads JSON as YAML there, where these end a line or are refused.
_NOT_IN_YAML = re.compile("[\x7f-\xa0\u2028\u2029\ufeff\ufffe\uffff]")


@dataclass(frozen=True)
class Listing:
    """All objects of a kind at one version of the cluster."""

    items: list[Manifest]
    resource_version: str


@dataclass(frozen=True)
class Discovery:
    """What a server serves, and the faults of API groups that did not say."""

    served: frozenset[Resource]
    faults: dict[Resource, faults.ClusterFault]


@dataclass(frozen=True)
class WatchEvent:
    """ADDED, MODIFIED, DELETED (with the last state), or BOOKMARK (metadata.resourceVersion only)."""

    type: str
    object: Manifest

    @property
    def resource_version(self) -> str:
        return str(self.object["metadata"].get("resourceVersion", ""))


class ClusterClient:
    """One API server over one connection that is kept alive; one request at a time.

    `cluster` is the name under which requests are counted, of a cluster that is registered.
    `timeouts` are seconds to connect and to wait for the next bytes; a whole answer may take four
    times the latter. Any method raises ClusterFault: Unreachable, AddressNotAllowed, TLSRefused,
    Garbled, TooBusy, ServerFault, Unauthorized, Forbidden, KindAbsent, Rejected.
    """

    def __init__(
        self,
        access: Access,
        *,
        cluster: str = "",
        allow_loopback: bool = False,
        timeouts: tuple[float, float] = (5, 30),
        resolver: guard.Resolver = guard.system_resolver,
    ) -> None:
        client = _official_client()
        target = guard.parse_url(access.server)

        def addresses() -> list[str]:
            return guard.resolve(target, allow_loopback=allow_loopback, resolver=resolver)

        self._access = access
        self._cluster = cluster
        self._server = target.url
        self._connect, self._read = timeouts
        # No proxy: one of the environment would be opened before it is replaced below.
        configuration = client.Configuration(host=target.url, proxy="", no_proxy="*")
        self._api = client.ApiClient(configuration)
        self._no_answer = (*connection_errors.NO_ANSWER, client.ApiException)
        self._connections = transport.Connections(access, addresses)
        self._api.rest_client.pool_manager = self._connections

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection; the next request would open a new one."""
        self._api.close()

    def interrupt(self) -> None:
        """From another thread: the request that is waited for raises Unreachable at once."""
        self._connections.interrupt()

    # --- the cluster ------------------------------------------------------------------------------

    def version(self) -> str:
        """`v1.31.2`, from /version."""
        return responses.text(self._call("GET", "/version"), "gitVersion")

    def identity(self) -> str:
        """The uid of the namespace kube-system, which lives as long as the cluster."""
        namespace = self._call("GET", "/api/v1/namespaces/kube-system")
        return responses.text(responses.member(namespace, "metadata"), "uid")

    def served(self, resources: Iterable[Resource]) -> frozenset[Resource]:
        """Return those of the resources that the server serves; raises what `discover` notes."""
        discovery = self.discover(resources)
        for fault in discovery.faults.values():
            raise fault
        return discovery.served

    def discover(self, resources: Iterable[Resource]) -> Discovery:
        """Ask which of the resources are served. Absent is only what a list has not.

        A resource that is of interest only with another one counts where the other one is served,
        too. An API group whose own server is down (an APIService of OpenShift) is noted as a fault
        of its resources, and hides no other group.
        """
        requested = list(resources)
        resources = requested + [
            resource.only_with for resource in requested if resource.only_with is not None
        ]
        groups = responses.objects(self._call("GET", "/apis"), "groups")
        api_versions = {
            (str(group.get("name")), str(version.get("version")))
            for group in groups
            for version in responses.objects(group, "versions")
        } | {("", "v1")}
        versions = {(resource.group, resource.version) for resource in resources} & api_versions
        plurals: dict[tuple[str, str], set[str]] = {}
        broken: dict[tuple[str, str], faults.ClusterFault] = {}
        for version in versions:
            try:
                plurals[version] = self._plurals(*version)
            except faults.ServerFault as fault:
                broken[version] = fault
            except faults.KindAbsent:  # although it is in the list of groups
                name = "/".join(version)
                broken[version] = faults.ServerFault(f"The API server does not answer for {name}.")
        served_resources = {
            resource
            for resource in resources
            if resource.plural in plurals.get((resource.group, resource.version), ())
        }
        return Discovery(
            frozenset(
                resource
                for resource in served_resources & {*requested}
                if resource.only_with is None or resource.only_with in served_resources
            ),
            {
                resource: broken[resource.group, resource.version]
                for resource in requested
                if (resource.group, resource.version) in broken
            },
        )

    def _plurals(self, group: str, version: str) -> set[str]:
        answer = self._call("GET", f"/apis/{group}/{version}" if group else f"/api/{version}")
        return {str(entry.get("name")) for entry in responses.objects(answer, "resources")}

    def may(
        self, verb: str, resource: Resource, *, namespace: str = "", subresource: str = ""
    ) -> bool:
        """Whether these credentials have a right (SelfSubjectAccessReview)."""
        attributes = {"verb": verb, "group": resource.group, "resource": resource.plural}
        attributes |= {"version": resource.version, "namespace": namespace}
        if subresource:
            attributes["subresource"] = subresource
        kind = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
        review = {**kind, "spec": {"resourceAttributes": attributes}}
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        return (
            responses.member(self._call("POST", path, body=review), "status").get("allowed") is True
        )

    def schema(self, resource: Resource) -> Manifest | None:
        """The OpenAPI schema of a custom resource's version; None when no door shows one.

        From the CRD, which takes a right of its own, else from what every user may read.
        """
        for path, read in schemas.doors(resource):
            with contextlib.suppress(faults.Forbidden, faults.NotFound, faults.KindAbsent):
                if schema := read(self._call("GET", path), resource):
                    return schema
        return None

    # --- reading ----------------------------------------------------------------------------------

    def list(
        self, resource: Resource, *, namespace: str = "", keep: Projection | None = None
    ) -> Listing:
        """All objects, in pages; complete, or it raises. Also raises Gone, after three attempts.

        `keep` is given each object of a page and answers what is kept of it, None for nothing.
        """
        for _ in range(_STARTS - 1):
            with contextlib.suppress(faults.Gone):
                return self._list(resource, namespace, keep)
        return self._list(resource, namespace, keep)

    def _list(self, resource: Resource, namespace: str, keep: Projection | None) -> Listing:
        path, token = _path(resource, namespace=namespace), ""
        items: builtins.list[Manifest] = []
        raw = self._page(path, token)
        with futures.ThreadPoolExecutor(1, "page") as ahead:
            for _ in range(MOST_PAGES):
                # While this page is parsed the server makes the next one: still one request at a time.
                guess = _guessed_token(raw)
                following = ahead.submit(self._page, path, guess) if guess else None
                page = responses.parsed(raw)
                if not str(page.get("kind")).endswith("List"):
                    raise faults.MalformedResponse("the answer is no list")
                metadata = responses.member(page, "metadata")
                listed = responses.objects(page, "items")
                items += listed if keep is None else filter(None, map(keep, listed))
                before, token = token, metadata.get("continue") or ""
                if not token:
                    return Listing(items, responses.text(metadata, "resourceVersion"))
                if token == before:
                    break
                if following is not None:
                    futures.wait([following])
                raw = (
                    following.result() if following and guess == token else self._page(path, token)
                )
        raise faults.MalformedResponse("the list does not end")

    def _page(self, path: str, token: str) -> bytes:
        query = {"limit": str(PAGE)} | ({"continue": token} if token else {})
        return self._raw("GET", path, query)

    def get(self, resource: Resource, name: str, namespace: str = "") -> Manifest:
        """One object. Also raises ObjectAbsent."""
        return self._call("GET", _path(resource, namespace=namespace, name=name))

    def watch(
        self, resource: Resource, resource_version: str, *, seconds: int, namespace: str = ""
    ) -> Iterator[WatchEvent]:
        """What happens after a version, for so many seconds; then it ends without a fault.

        Begin again from the version of the last event. Also raises Gone: list again.
        """
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(seconds),
        }
        path = _path(resource, namespace=namespace)
        response = self._send("GET", path, query, read=seconds + _WATCH_GRACE)
        try:
            if response.status != 200:
                raise self._refusal(response)
            responses.check_encoding(response)
            for line in responses.lines_of(response):
                yield _event(responses.parsed(line))
        except self._no_answer as error:
            raise connection_errors.fault_of(error) from error
        finally:
            response.close()

    # --- writing ----------------------------------------------------------------------------------

    def apply(
        self,
        resource: Resource,
        manifest: Manifest,
        *,
        manager: str,
        subresource: str = "",
        dry_run: bool = False,
        force: bool = False,
    ) -> Manifest:
        """Server-side apply; what is stored then (after pruning).

        `force` takes the fields of the manifest from whoever owns them: only what a person confirmed.

        `manager` is another for a subresource than for the object: before Kubernetes 1.22 one name
        for both loses the ownership of the other part. Also raises FieldConflict (with causes),
        StaleVersion (the manifest has a resourceVersion), ObjectAbsent (its namespace; the object of
        a subresource).
        """
        name, namespace = _address(manifest)
        path = _path(resource, namespace=namespace, name=name, subresource=subresource)
        query = _writing(manager, dry_run) | ({"force": "true"} if force else {})
        stored = self._call("PATCH", path, query, body=_yaml(manifest), content_type=_APPLY)
        return stored if "metadata" in stored else self.get(resource, name, namespace)

    def patch(
        self,
        resource: Resource,
        current: Manifest,
        changes: Mapping[str, Any],
        *,
        manager: str,
        dry_run: bool = False,
    ) -> Manifest:
        """Set single fields (JSON pointer -> value) of this very version of an object.

        Also raises StaleVersion (somebody else was quicker), ObjectAbsent.
        """
        name, namespace = _address(current)
        version = current["metadata"]["resourceVersion"]
        operations: builtins.list[Manifest] = [
            {"op": "add", "path": pointer, "value": value} for pointer, value in changes.items()
        ]
        # The server compares the version of a patched object with the stored one: 409 when stale.
        operations.append({"op": "add", "path": "/metadata/resourceVersion", "value": version})
        path = _path(resource, namespace=namespace, name=name)
        query = _writing(manager, dry_run)
        return self._call("PATCH", path, query, body=operations, content_type=_JSON_PATCH)

    def create(
        self, resource: Resource, manifest: Manifest, *, manager: str, dry_run: bool = False
    ) -> Manifest:
        """A new object, as it is stored. Also raises AlreadyThere, ObjectAbsent (its namespace)."""
        path = _path(resource, namespace=_address(manifest)[1])
        return self._call("POST", path, _writing(manager, dry_run), body=manifest)

    def replace(
        self,
        resource: Resource,
        manifest: Manifest,
        *,
        manager: str,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Manifest:
        """The object in place of the version that the manifest names, as it is stored.

        Also raises StaleVersion (read it again and decide anew), ObjectAbsent. A manifest without
        metadata.resourceVersion would overwrite blindly: ValueError.
        """
        if not manifest["metadata"].get("resourceVersion"):
            raise ValueError("replace needs metadata.resourceVersion")
        name, namespace = _address(manifest)
        path = _path(resource, namespace=namespace, name=name, subresource=subresource)
        return self._call("PUT", path, _writing(manager, dry_run), body=manifest)

    def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        uid: str,
        resource_version: str = "",
        dry_run: bool = False,
    ) -> None:
        """Delete this very object, not a later one of its name; its finalizers may keep it a while.

        Also raises StaleVersion (another uid or version), ObjectAbsent.
        """
        conditions = {"uid": uid}
        if resource_version:
            conditions["resourceVersion"] = resource_version
        body: Manifest = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": conditions}
        if dry_run:
            # A server that is given a body does not look at the query.
            body["dryRun"] = ["All"]
        path = _path(resource, namespace=namespace, name=name)
        self._call("DELETE", path, {"dryRun": "All"} if dry_run else {}, body=body)

    # --- one request ------------------------------------------------------------------------------

    def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        body: Body | None = None,
        content_type: str = "application/json",
    ) -> Manifest:
        return responses.parsed(self._raw(method, path, query or {}, body, content_type))

    def _raw(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Body | None = None,
        content_type: str = "application/json",
    ) -> bytes:
        response = self._send(method, path, query, body=body, content_type=content_type)
        if not 200 <= response.status < 300:
            refusal = self._refusal(response)
            if isinstance(refusal, faults.StaleVersion):
                process_metrics.count("ipam_stale_writes_rejected_total")
            raise refusal
        return self._body(response)

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        *,
        body: Body | None = None,
        content_type: str = "application/json",
        read: float = 0,
    ) -> urllib3.BaseHTTPResponse:
        headers = {
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": settings.IPAM_USER_AGENT,
        }
        if token := self._access.bearer():
            headers["Authorization"] = f"Bearer {token}"
        if body is not None:
            headers["Content-Type"] = content_type
        url = self._server + path + ("?" + parse.urlencode(query) if query else "")
        timeouts = (self._connect, read or self._read)
        try:
            answer = self._api.call_api(method, url, headers, body, _request_timeout=timeouts)
        except self._no_answer as error:
            self._count(method, query, "none")
            raise connection_errors.fault_of(error) from error
        response: urllib3.BaseHTTPResponse = answer.response
        self._count(method, query, str(response.status))
        return response

    def _count(self, method: str, query: Mapping[str, str], code: str) -> None:
        if self._cluster:
            verb = _VERBS[method]
            if method == "GET" and "watch" in query:
                verb = "watch"
            elif method == "GET" and "limit" in query:
                verb = "list"
            process_metrics.count(
                "ipam_k8s_requests_total", cluster=self._cluster, verb=verb, code=code
            )

    def _body(self, response: urllib3.BaseHTTPResponse) -> bytes:
        try:
            return responses.body_of(response, seconds=self._read * _WHOLE_ANSWER)
        except self._no_answer as error:
            raise connection_errors.fault_of(error) from error

    def _refusal(self, response: urllib3.BaseHTTPResponse) -> faults.ClusterFault:
        return responses.refusal(response.status, response.headers, self._body(response))


@functools.lru_cache
def _official_client() -> Any:
    """`kubernetes.client`, imported at its first use: half a second that web processes never pay."""
    from kubernetes import client  # noqa: PLC0415

    # Its thousand modules stay for good. Walked by the collector again and again while pages of JSON
    # are read, they would double the time of a list.
    gc.freeze()
    return client


def _guessed_token(page: bytes) -> str:
    """What `continue` of a list seems to be, which stands at its beginning or its end; "" for none."""
    match = _TOKEN.search(page[:_METADATA]) or _TOKEN.search(page[-_METADATA:])
    return match[1].decode() if match else ""


def _event(event: Manifest) -> WatchEvent:
    kind, subject = event.get("type"), responses.member(event, "object")
    if kind == "ERROR":
        raise responses.of_status(subject)
    if kind not in {"ADDED", "MODIFIED", "DELETED", "BOOKMARK"}:
        raise faults.MalformedResponse("the watch told something that is no event")
    responses.member(subject, "metadata")
    return WatchEvent(kind, subject)


def _path(resource: Resource, *, namespace: str = "", name: str = "", subresource: str = "") -> str:
    if name and not name.strip("."):
        # `.` and `..` would be other paths.
        raise faults.NotFound(f"no object has the name {name}")
    return resource.path(name, namespace=namespace, subresource=subresource)


def _writing(manager: str, dry_run: bool) -> dict[str, str]:
    return {"fieldManager": manager} | ({"dryRun": "All"} if dry_run else {})


def _address(manifest: Manifest) -> tuple[str, str]:
    metadata = manifest["metadata"]
    return metadata["name"], metadata.get("namespace", "")


def _yaml(manifest: Manifest) -> bytes:
    """JSON that is YAML too: no surrogate pairs, and no character that ends a line of YAML."""
    text = json.dumps(manifest, ensure_ascii=False, allow_nan=False)
    return _NOT_IN_YAML.sub(lambda match: f"\\u{ord(match[0]):04x}", text).encode()
