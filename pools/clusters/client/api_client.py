"""Client of a Kubernetes API server.

A response is complete, or a fault is raised (pools.platform.outbound.faults). The client does not retry.
"""

import builtins
import contextlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pools.clusters.client import responses
from pools.clusters.client.server_connection import ServerConnection
from pools.core.kubernetes.resources import Manifest, Resource
from pools.platform.outbound import faults

Projection = Callable[[Manifest], Manifest | None]

PAGE = 500  # objects
MOST_PAGES = 10_000  # more pages mean that the server repeats itself
_STARTS = 3  # attempts at a list whose `continue` token expires
_WATCH_GRACE = 15  # seconds after the end of a watch until the server counts as dead
_APPLY = "application/apply-patch+yaml"
_JSON_PATCH = "application/json-patch+json"
# The server parses the body of an apply as YAML, where these end a line or are invalid.
_NOT_IN_YAML = re.compile("[\x7f-\xa0\u2028\u2029\ufeff\ufffe\uffff]")


@dataclass(frozen=True)
class Listing:
    """All objects of a kind at one version of the cluster."""

    items: list[Manifest]
    resource_version: str


@dataclass(frozen=True)
class Discovery:
    """The served resources, and the faults of API groups that did not respond."""

    served: frozenset[Resource]
    faults: dict[Resource, faults.ClusterFault]


@dataclass(frozen=True)
class WatchEvent:
    """An event: ADDED, MODIFIED, DELETED (last state), or BOOKMARK (metadata.resourceVersion only)."""

    type: str
    object: Manifest

    @property
    def resource_version(self) -> str:
        return str(self.object["metadata"].get("resourceVersion", ""))


class ClusterClient(ServerConnection):
    """Client of one API server.

    Any method raises ClusterFault: Unreachable, AddressNotAllowed, TLSRefused, MalformedResponse, TooBusy,
    ServerFault, Unauthorized, Forbidden, KindNotServed, Rejected.
    """

    # --- the cluster ------------------------------------------------------------------------------

    def version(self) -> str:
        """Return the version of the server, such as `v1.31.2`."""
        version = responses.get_string(self._call("GET", "/version"), "gitVersion")
        return faults.printable_message(version, self._secrets())

    def identity(self) -> str:
        """Return the uid of the namespace kube-system, which exists as long as the cluster."""
        namespace = self._call("GET", "/api/v1/namespaces/kube-system")
        return responses.get_string(responses.get_object(namespace, "metadata"), "uid")

    def served(self, resources: Iterable[Resource]) -> frozenset[Resource]:
        """Return the resources that the server serves. Raises the faults that `discover` returns."""
        discovery = self.discover(resources)
        for fault in discovery.faults.values():
            raise fault
        return discovery.served

    def discover(self, resources: Iterable[Resource]) -> Discovery:
        """Return which of the resources are served; a resource is absent only if a list lacks it.

        A resource with `only_with` counts as served only if the other resource is served too. If the
        server of an API group is down (an APIService of OpenShift), its resources have a fault; other
        groups are not affected.
        """
        requested = list(resources)
        resources = requested + [
            resource.only_with for resource in requested if resource.only_with is not None
        ]
        groups = responses.get_objects(self._call("GET", "/apis"), "groups")
        api_versions = {
            (str(group.get("name")), str(version.get("version")))
            for group in groups
            for version in responses.get_objects(group, "versions")
        } | {("", "v1")}
        versions = {(resource.group, resource.version) for resource in resources} & api_versions
        plurals: dict[tuple[str, str], set[str]] = {}
        broken: dict[tuple[str, str], faults.ClusterFault] = {}
        for version in versions:
            try:
                plurals[version] = self._plurals(*version)
            except faults.ServerFault as fault:
                broken[version] = fault
            except faults.KindNotServed:  # although the list of groups has it
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

    def can_create(self, resource: Resource) -> bool:
        """Return False if the server takes no new objects of the kind: its definition is deleted, or being deleted."""
        try:
            entries = self._resources(resource.group, resource.version)
        except faults.KindNotServed:
            return False
        verbs = [entry.get("verbs") for entry in entries if entry.get("name") == resource.plural]
        return any(isinstance(each, list) and "create" in each for each in verbs)

    def _plurals(self, group: str, version: str) -> set[str]:
        return {str(entry.get("name")) for entry in self._resources(group, version)}

    def _resources(self, group: str, version: str) -> builtins.list[Manifest]:
        answer = self._call("GET", f"/apis/{group}/{version}" if group else f"/api/{version}")
        return responses.get_objects(answer, "resources")

    def may(
        self, verb: str, resource: Resource, *, namespace: str = "", subresource: str = ""
    ) -> bool:
        """Return True if the credentials have a right (SelfSubjectAccessReview)."""
        attributes = {"verb": verb, "group": resource.group, "resource": resource.plural}
        attributes |= {"version": resource.version, "namespace": namespace or resource.only_in}
        if resource.only_named:
            attributes["name"] = resource.only_named
        if subresource:
            attributes["subresource"] = subresource
        kind = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
        review = {**kind, "spec": {"resourceAttributes": attributes}}
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        return (
            responses.get_object(self._call("POST", path, body=review), "status").get("allowed")
            is True
        )

    def schema(self, resource: Resource) -> Manifest | None:
        """Return the OpenAPI schema of a version of a custom resource; None if it is not readable.

        It comes from the CRD, which requires a right, else from endpoints that all users can read.
        """
        for path, read in responses.schema_endpoints(resource):
            try:
                answer = self._call("GET", path)
            except (faults.Forbidden, faults.NotFound, faults.KindNotServed):
                continue
            except faults.MalformedResponse as error:
                if error.status != 404:
                    raise
                continue  # /openapi/v3 has an empty 404 for what is not published yet
            if schema := read(answer, resource):
                return schema
        return None

    # --- reading ----------------------------------------------------------------------------------

    def list(
        self, resource: Resource, *, namespace: str = "", project: Projection | None = None
    ) -> Listing:
        """Return all objects, read in pages. Also raises Gone, after three attempts.

        They are those of the namespace and the name that the resource is restricted to, if it is. `project` returns the part of an object that is kept; None drops the object.
        """
        for _ in range(_STARTS - 1):
            with contextlib.suppress(faults.Gone):
                return self._list(resource, namespace, project)
        return self._list(resource, namespace, project)

    def _list(self, resource: Resource, namespace: str, project: Projection | None) -> Listing:
        path, token = _path(resource, namespace=namespace or resource.only_in), ""
        items: builtins.list[Manifest] = []
        for _ in range(MOST_PAGES):
            query = {"limit": str(PAGE), **_selection(resource)}
            query |= {"continue": token} if token else {}
            page = self._call("GET", path, query)
            if not str(page.get("kind")).endswith("List"):
                raise faults.MalformedResponse("the response is not a list")
            metadata = responses.get_object(page, "metadata")
            listed = responses.get_objects(page, "items")
            items += listed if project is None else filter(None, map(project, listed))
            before, token = token, metadata.get("continue") or ""
            if not token:
                return Listing(items, responses.get_string(metadata, "resourceVersion"))
            if token == before:
                break
        raise faults.MalformedResponse("the list does not end")

    def get(self, resource: Resource, name: str, namespace: str = "") -> Manifest:
        """Return one object. Also raises NotFound."""
        return self._call("GET", _path(resource, namespace=namespace, name=name))

    def find(self, resource: Resource, name: str, namespace: str = "") -> Manifest | None:
        """Return one object; None if the cluster does not have it."""
        with contextlib.suppress(faults.NotFound):
            return self.get(resource, name, namespace)
        return None

    def watch(
        self, resource: Resource, resource_version: str, *, seconds: int, namespace: str = ""
    ) -> Iterator[WatchEvent]:
        """Yield the events after a resource version for `seconds`; then end without a fault.

        Continue with the version of the last event. Also raises Gone: then list again.
        """
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(seconds),
            **_selection(resource),
        }
        path = _path(resource, namespace=namespace or resource.only_in)
        response = self._send("GET", path, query, read=seconds + _WATCH_GRACE)
        try:
            if response.status != 200:
                raise self._refusal(response)
            responses.check_encoding(response)
            for line in responses.read_lines(response):
                yield _parse_event(responses.parse_object(line), self._secrets())
        except self._no_answer as error:
            raise faults.fault_of(error) from error
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
        """Apply a manifest (server-side apply) and return the stored object, after pruning.

        `force` takes the fields from their managers; only for fields that a person confirmed. Use
        different managers for an object and its subresource: before Kubernetes 1.22, one name for both
        loses the ownership of the other part. Also raises FieldConflict (with causes), StaleVersion
        (the manifest has a resourceVersion), NotFound (the namespace, or the object of a subresource).
        """
        name, namespace = _name_and_namespace(manifest)
        path = _path(resource, namespace=namespace, name=name, subresource=subresource)
        query = _write_query(manager, dry_run) | ({"force": "true"} if force else {})
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
        """Set fields (JSON pointer -> value) of exactly this version of an object.

        Also raises StaleVersion (the object changed), NotFound.
        """
        name, namespace = _name_and_namespace(current)
        version = current["metadata"]["resourceVersion"]
        operations: builtins.list[Manifest] = [
            {"op": "add", "path": pointer, "value": value} for pointer, value in changes.items()
        ]
        # The server compares the patched resourceVersion with the stored one: 409 if they differ.
        operations.append({"op": "add", "path": "/metadata/resourceVersion", "value": version})
        path = _path(resource, namespace=namespace, name=name)
        query = _write_query(manager, dry_run)
        return self._call("PATCH", path, query, body=operations, content_type=_JSON_PATCH)

    def create(
        self, resource: Resource, manifest: Manifest, *, manager: str, dry_run: bool = False
    ) -> Manifest:
        """Create an object and return it as stored. Also raises AlreadyExists, NotFound (the namespace)."""
        path = _path(resource, namespace=_name_and_namespace(manifest)[1])
        return self._call("POST", path, _write_query(manager, dry_run), body=manifest)

    def replace(
        self,
        resource: Resource,
        manifest: Manifest,
        *,
        manager: str,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Manifest:
        """Replace the version of an object that the manifest names; return the stored object.

        Also raises StaleVersion (the object changed), NotFound, and ValueError for a manifest without
        metadata.resourceVersion, which would overwrite any version.
        """
        if not manifest["metadata"].get("resourceVersion"):
            raise ValueError("replace needs metadata.resourceVersion")
        name, namespace = _name_and_namespace(manifest)
        path = _path(resource, namespace=namespace, name=name, subresource=subresource)
        return self._call("PUT", path, _write_query(manager, dry_run), body=manifest)

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
        """Delete the object with this uid; its finalizers may delay the deletion.

        Also raises StaleVersion (another uid or version), NotFound.
        """
        conditions = {"uid": uid}
        if resource_version:
            conditions["resourceVersion"] = resource_version
        body: Manifest = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": conditions}
        if dry_run:
            # A server ignores the query if the request has a body.
            body["dryRun"] = ["All"]
        path = _path(resource, namespace=namespace, name=name)
        self._call("DELETE", path, {"dryRun": "All"} if dry_run else {}, body=body)


def _parse_event(event: Manifest, secrets: Iterable[str]) -> WatchEvent:
    kind, subject = event.get("type"), responses.get_object(event, "object")
    if kind == "ERROR":
        raise responses.fault_of_status(subject, secrets)
    if kind not in {"ADDED", "MODIFIED", "DELETED", "BOOKMARK"}:
        raise faults.MalformedResponse("the watch returned an object that is not an event")
    responses.get_object(subject, "metadata")
    return WatchEvent(kind, subject)


def _selection(resource: Resource) -> dict[str, str]:
    """Return the query that restricts a list or a watch to the objects that are read."""
    if resource.only_labelled:
        return {"labelSelector": resource.only_labelled}
    if not resource.only_named:
        return {}
    return {"fieldSelector": f"metadata.name={resource.only_named}"}


def _path(resource: Resource, *, namespace: str = "", name: str = "", subresource: str = "") -> str:
    if name and not name.strip("."):
        # `.` and `..` would address other paths.
        raise faults.NotFound(f"no object has the name {name}")
    return resource.path(name, namespace=namespace, subresource=subresource)


def _write_query(manager: str, dry_run: bool) -> dict[str, str]:
    return {"fieldManager": manager} | ({"dryRun": "All"} if dry_run else {})


def _name_and_namespace(manifest: Manifest) -> tuple[str, str]:
    metadata = manifest["metadata"]
    return metadata["name"], metadata.get("namespace", "")


def _yaml(manifest: Manifest) -> bytes:
    """Return JSON that is valid YAML: without surrogate pairs and line ends of YAML."""
    text = json.dumps(manifest, ensure_ascii=False, allow_nan=False)
    return _NOT_IN_YAML.sub(lambda match: f"\\u{ord(match[0]):04x}", text).encode()
