"""Create, update, patch, apply and delete, as the API server's registry does them."""

from __future__ import annotations

import datetime
import json
import secrets
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.kube.fake import ownership, patches, refusals, schema
from tests.kube.fake.kinds import Kind
from tests.kube.fake.store import Store, Stored, convert

Item = dict[str, Any]
Admission = Callable[["Write", str, Item | None, Item | None], None]
"""Operation, the object before, the object after; raises Refused."""

_KEPT = ("uid", "creationTimestamp", "generation", "deletionTimestamp", "managedFields", "selfLink")
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


def _clone(item: Item) -> Item:
    copied: Item = json.loads(json.dumps(item))
    return copied


def now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def no_admission(write: Write, operation: str, before: Item | None, after: Item | None) -> None:
    """Everything is let through."""


@dataclass(frozen=True)
class Write:
    """One write request to one object."""

    store: Store
    kind: Kind
    version: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    manager: str = "unknown"
    dry_run: bool = False
    strict: bool = False
    minor: int = 33
    user: str = ""
    admit: Admission = no_admission

    @property
    def _has_status(self) -> bool:
        return self.kind.versions[self.version].status

    @property
    def _schema(self) -> schema.Schema:
        return self.kind.schemas[self.version]

    def _owner(self, operation: str) -> ownership.Owner:
        return ownership.Owner(
            manager=self.manager,
            operation=operation,
            api_version=self.kind.api_version(self.version),
            subresource=self.subresource if self.minor >= 22 else "",
            time=now(),
            paths=frozenset(),
        )

    def existing(self) -> Stored:
        """Refused 404."""
        stored = self.store.get(self.kind, self.name, self.namespace)
        if stored is None:
            raise refusals.not_found(self.kind, self.name)
        return stored

    # --- what every body goes through -----------------------------------------------------------

    def _received(self, body: Any) -> Item:
        """The body, if it is one of this kind, in this namespace, of this name."""
        if not isinstance(body, dict):
            raise refusals.bad_request("the object provided is unrecognized: not a JSON object")
        expected = self.kind.api_version(self.version), self.kind.kind
        result = body.get("apiVersion"), body.get("kind")
        if result != expected:
            raise refusals.bad_request(
                f"the API version or kind in the data ({result[0]}, {result[1]}) does not match the"
                f" expected ({expected[0]}, {expected[1]})"
            )
        metadata = dict(body.get("metadata") or {})
        if self.namespace and metadata.setdefault("namespace", self.namespace) != self.namespace:
            raise refusals.bad_request(
                "the namespace of the provided object does not match the namespace sent on the"
                " request"
            )
        if self.name and metadata.setdefault("name", self.name) != self.name:
            raise refusals.bad_request(
                f"the name of the object ({metadata['name']}) does not match the name on the URL"
                f" ({self.name})"
            )
        return body | {"metadata": metadata}

    def _shaped(self, item: Item) -> Item:
        """Without unknown fields, with defaults."""
        dropped: list[str] = []
        shaped: Item = schema.prune(item, self._schema, dropped=dropped)
        if dropped and self.strict:
            listed = ", ".join(f'unknown field "{path}"' for path in dropped)
            raise refusals.bad_request(
                f'{self.kind.kind} in version "{self.version}" cannot be handled as a'
                f" {self.kind.kind}: strict decoding error: {listed}"
            )
        schema.default(shaped, self._schema)
        return shaped

    def _check(self, item: Item) -> None:
        name = item["metadata"]["name"]
        self.kind.check_labels(name, item["metadata"].get("labels") or {})
        causes = list(schema.problems(item, self._schema))
        if causes:
            raise refusals.invalid(self.kind, name, causes)

    # --- verbs ----------------------------------------------------------------------------------

    def create(self, body: Any) -> Stored:
        item = self._received(body)
        metadata = item["metadata"]
        if metadata.get("resourceVersion"):
            raise refusals.bad_request("resourceVersion should not be set on objects to be created")
        return self._create(_clone(item), self._owner("Update"))

    def put_new(self, body: Item) -> Stored:
        """As create, its status and finalizers included, neither validated nor admitted."""
        item = self._shaped(_clone(self._received(body)))
        metadata = item["metadata"]
        for field in ("uid", "creationTimestamp"):
            metadata.setdefault(field, {"uid": str(uuid.uuid4())}.get(field, now()))
        if not self.kind.builtin:
            metadata.setdefault("generation", 1)
        owners = ownership.after_update([], self._owner("Update"), {}, item, self._schema)
        metadata["managedFields"] = ownership.entries(owners)
        return self._store(item)

    def put_over(self, body: Item) -> Stored:
        """As replace, whatever was there, its status included."""
        before = self.existing().read(self.version)
        item = self._shaped(_clone(self._received(body)))
        for field in _KEPT:
            if field in before["metadata"]:
                item["metadata"].setdefault(field, before["metadata"][field])
        if not self.kind.builtin and _spec(before) != _spec(item):
            item["metadata"]["generation"] = before["metadata"].get("generation", 0) + 1
        owners = ownership.after_update(
            ownership.owners(before), self._owner("Update"), before, item, self._schema
        )
        item["metadata"]["managedFields"] = ownership.entries(owners)
        return self._store(item)

    def _create(self, item: Item, owner: ownership.Owner | None) -> Stored:
        metadata = item["metadata"]
        self._name(metadata)
        for field in (*_KEPT, "deletionGracePeriodSeconds"):
            if field != "managedFields" or owner is not None:
                metadata.pop(field, None)
        if self._has_status and not self.kind.builtin:
            item.pop("status", None)
        item = self._shaped(item)
        metadata = item["metadata"]
        with self.store.changed:
            if self.store.get(self.kind, metadata["name"], self.namespace):
                raise refusals.already_exists(self.kind, metadata["name"])
            self._check(item)
            metadata["uid"] = str(uuid.uuid4())
            metadata["creationTimestamp"] = now()
            if not self.kind.builtin:
                metadata["generation"] = 1
            if owner is not None:
                owners = ownership.after_update([], owner, {}, item, self._schema)
                metadata["managedFields"] = ownership.entries(owners)
            self.admit(self, "CREATE", None, item)
            return self._store(item)

    def _name(self, metadata: Item) -> None:
        if not metadata.get("name") and metadata.get("generateName"):
            ending = "".join(secrets.choice(_ALPHABET) for _ in range(5))
            metadata["name"] = metadata["generateName"] + ending
        if not metadata.get("name"):
            cause = {
                "reason": "FieldValueRequired",
                "message": "Required value: name or generateName is required",
                "field": "metadata.name",
            }
            raise refusals.invalid(self.kind, "", [cause])
        self.kind.check_name(metadata["name"])

    def _store(self, item: Item) -> Stored:
        stored = convert(item, self.kind, self.kind.storage.name)
        if self.dry_run:
            return Stored(self.kind, stored, 0)
        return self.store.write(self.kind, stored)

    def replace(self, body: Any) -> Stored:
        item = self._received(body)
        with self.store.changed:
            stored = self.existing()
            if not item["metadata"].get("resourceVersion") and not self.kind.builtin:
                cause = {
                    "reason": "FieldValueInvalid",
                    "message": "Invalid value: 0x0: must be specified for an update",
                    "field": "metadata.resourceVersion",
                }
                raise refusals.invalid(self.kind, self.name, [cause])
            return self._update(stored, _clone(item))

    def patch(self, body: Any, *, json_patch: bool) -> Stored:
        with self.store.changed:
            stored = self.existing()
            before = _clone(stored.read(self.version))
            patched = (
                patches.json_patch(before, body) if json_patch else patches.merge(before, body)
            )
            return self._update(stored, _clone(self._received(patched)))

    def _update(
        self, stored: Stored, item: Item, owners: list[ownership.Owner] | None = None
    ) -> Stored:
        """Store what a PUT or a patch made of an object, or what an apply with its owners did."""
        before = stored.read(self.version)
        self._check_preconditions(stored, item["metadata"])
        after = self._only_what_may_change(before, self._shaped(item))
        self._check(after)
        if not self.kind.builtin and _spec(before) != _spec(after):
            after["metadata"]["generation"] = before["metadata"].get("generation", 0) + 1
        if owners is None:
            owners = ownership.after_update(
                ownership.owners(stored.item), self._owner("Update"), before, after, self._schema
            )
        if owners or "managedFields" in before["metadata"]:
            after["metadata"]["managedFields"] = ownership.entries(owners)
        self.admit(self, "UPDATE", before, after)
        if after == before:
            return stored
        if self._is_released(after):
            if not self.dry_run:
                self.store.delete(stored)
            return Stored(self.kind, convert(after, self.kind, self.kind.storage.name), 0)
        return self._store(after)

    def _is_released(self, after: Item) -> bool:
        metadata = after["metadata"]
        return "deletionTimestamp" in metadata and not metadata.get("finalizers")

    def _check_preconditions(self, stored: Stored, preconditions: Item) -> None:
        """uid and resourceVersion, where they are given, are those of the stored object."""
        metadata = stored.item["metadata"]
        if preconditions.get("uid") and preconditions["uid"] != metadata["uid"]:
            raise refusals.conflict(
                self.kind,
                metadata["name"],
                f"Precondition failed: UID in precondition: {preconditions['uid']}, UID in object meta:"
                f" {metadata['uid']}",
            )
        version = preconditions.get("resourceVersion")
        if version and str(version) != metadata["resourceVersion"]:
            raise refusals.conflict(
                self.kind,
                metadata["name"],
                "the object has been modified; please apply your changes to the latest version and"
                " try again",
            )

    def _only_what_may_change(self, before: Item, after: Item) -> Item:
        if self.subresource == "status":
            result = {k: v for k, v in before.items() if k != "status"}
            result["metadata"] = dict(before["metadata"])
            return result | ({"status": after["status"]} if "status" in after else {})
        metadata = after["metadata"]
        for field in (*_KEPT, "resourceVersion", "deletionGracePeriodSeconds"):
            metadata.pop(field, None)
            if field in before["metadata"]:
                metadata[field] = before["metadata"][field]
        if self._has_status:
            after.pop("status", None)
            if "status" in before:
                after["status"] = before["status"]
        self._check_finalizers(before["metadata"], metadata)
        return after

    def _check_finalizers(self, before: Item, after: Item) -> None:
        added = set(after.get("finalizers") or ()) - set(before.get("finalizers") or ())
        if "deletionTimestamp" in before and added:
            cause = {
                "reason": "FieldValueForbidden",
                "message": "Forbidden: no new finalizers can be added if the object is being"
                f" deleted, found new finalizers {sorted(added)}",
                "field": "metadata.finalizers",
            }
            raise refusals.invalid(self.kind, self.name, [cause])

    def apply(self, body: Any, *, force: bool) -> tuple[Stored, bool]:
        """The object, and whether it was created."""
        item = self._received(body)
        if item["metadata"].get("managedFields"):
            raise refusals.bad_request("metadata.managedFields must be nil")
        config = _clone(item)
        config = self._without_what_is_not_applied(config)
        me = self._owner("Apply")
        with self.store.changed:
            stored = self.store.get(self.kind, self.name, self.namespace)
            if stored is None:
                return self._create_applied(item, config, me), True
            self._check_preconditions(stored, item["metadata"])
            if self.strict:
                self._shaped(config)
            config = schema.prune(config, self._schema, dropped=[])
            before = stored.read(self.version)
            merged, owners = ownership.apply(
                before,
                config,
                me=me,
                listed=ownership.owners(stored.item),
                schema=self._schema,
                force=force,
            )
            merged = merged | {"metadata": merged.get("metadata") or {}}
            merged["metadata"] = {
                **merged["metadata"],
                "name": self.name,
                **({"namespace": self.namespace} if self.namespace else {}),
            }
            identity = {"apiVersion": before["apiVersion"], "kind": before["kind"]}
            merged["metadata"].pop("resourceVersion", None)
            return self._update(stored, _clone(merged | identity), owners), False

    def _without_what_is_not_applied(self, config: Item) -> Item:
        """The main endpoint does not own status, /status nothing else; older servers took all."""
        if self.minor < 22:
            return config
        if self.subresource == "status":
            stored = {k: v for k, v in config["metadata"].items() if k in {"name", "namespace"}}
            names = {"apiVersion", "kind", "status"}
            return {k: v for k, v in config.items() if k in names} | {"metadata": stored}
        if self._has_status:
            config.pop("status", None)
        return config

    def _create_applied(self, item: Item, config: Item, me: ownership.Owner) -> Stored:
        if self.subresource:
            raise refusals.not_found(self.kind, self.name)
        if item["metadata"].get("uid"):
            raise refusals.conflict(
                self.kind,
                self.name,
                f"uid mismatch: the provided object specified uid {item['metadata']['uid']}, and no"
                " existing object was found",
            )
        config["metadata"].pop("resourceVersion", None)
        pruned = schema.prune(config, self._schema, dropped=[])
        _, owners = ownership.apply({}, pruned, me=me, listed=[], schema=self._schema, force=False)
        config["metadata"]["managedFields"] = ownership.entries(owners)
        return self._create(config, None)

    def delete(self, options: Item) -> tuple[Stored, bool]:
        """The last state, and whether the object is gone (and not only marked)."""
        with self.store.changed:
            stored = self.existing()
            self._check_preconditions(stored, options.get("preconditions") or {})
            self.admit(self, "DELETE", stored.read(self.version), None)
            metadata = stored.item["metadata"]
            if not metadata.get("finalizers"):
                return (stored if self.dry_run else self.store.delete(stored)), True
            if "deletionTimestamp" in metadata:
                return stored, False
            marked = _clone(stored.item)
            marked["metadata"] |= {"deletionTimestamp": now(), "deletionGracePeriodSeconds": 0}
            if "generation" in marked["metadata"]:
                marked["metadata"]["generation"] += 1
            return self._store(marked), False


def _spec(item: Item) -> Item:
    """What a rise of the generation tells: all but metadata and status."""
    return {k: v for k, v in item.items() if k not in {"metadata", "status"}}
