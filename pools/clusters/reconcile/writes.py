"""Writes of objects: dry run first, never forced, read back; a rejected object fails alone.

Of an object with several managers, only fields that no other manager owns are applied. The other fields
remain drift until their managers change them, or somebody takes them over (pools.clusters.drift).
"""

import hashlib
import http
import json
import logging
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from pools.clusters.reconcile import ingest, storage
from pools.clusters.reconcile.handler import SyncContext, Write
from pools.core import errors
from pools.core.kubernetes import differences, managed_fields
from pools.core.kubernetes.differences import FieldDifference
from pools.core.kubernetes.resources import Manifest
from pools.platform.outbound import faults

ATTEMPTS = 5  # attempts after conflicts with other writers
# Fields that change with every write, independent of its content.
_BOOKKEEPING = {"resourceVersion", "generation", "managedFields", "uid", "creationTimestamp"}
_Differences = tuple[FieldDifference, ...]
_LONGEST_CONFLICT = 900  # characters
# By whom API servers say that an object without managedFields is owned.
_NOT_TRACKED = "before-first-apply"

log = logging.getLogger(__name__)


class FieldsNotKept(faults.ClusterFault):
    """The cluster accepts the object, but drops some of its fields, which its CRD does not have."""

    code = "fields_not_kept"


class WrittenElsewhere(faults.ClusterFault):
    """Another installation of Cadastre has changed the object, or this one did before a backup of it was restored.

    Adopt the object, or apply the register's values: until then nothing is written.
    """

    code = "written_elsewhere"


# Faults that may concern one object only; an admission webhook of the cluster can cause any of them.
_OBJECT_FAULTS = (
    faults.FieldConflict,
    faults.Rejected,
    faults.Forbidden,
    faults.ServerFault,
    WrittenElsewhere,
)


class WriteNotComputed(errors.IpamError):
    """The write could not be computed because of an internal error. See the log of the worker."""

    code = "internal_error"


@dataclass(frozen=True)
class WriteResult:
    """The result of one write.

    `stored` is the stored object, None if nothing was written. `field_differences` are the fields that
    still differ from the desired manifest; `fault` is the reason. `digest` is that of a manifest that was written whole.
    """

    write: Write
    stored: Manifest | None = None
    field_differences: _Differences = ()
    fault: errors.IpamError | None = None
    digest: str = ""


def send(
    context: SyncContext, write: Write, listed: Manifest | None, *, fresh: bool
) -> WriteResult:
    """Write one object if it differs from the desired manifest.

    `listed` is the object as last observed, None if it did not exist; without `fresh` it is read first. A
    fault of this object alone (a field of another manager, validation, a webhook) is in the result; a
    fault of the cluster is raised. After StaleVersion the object is read and the manifest computed again.
    Raises LeaseLost, ConnectionPaused.
    """
    field_differences: _Differences = ()
    stale_error: errors.IpamError | None = None
    for attempt in range(ATTEMPTS):
        try:
            current = (
                listed
                if fresh and not attempt
                else context.client.find(write.resource, write.name, write.namespace)
            )
            with ingest.savepoint():
                desired_manifest = write.make(current)
            field_differences = find_differences(write, desired_manifest, current)
        except (faults.ClusterFault, *ingest.STOPS):
            raise
        except ingest.OBJECT_ERRORS as error:
            return WriteResult(
                write, field_differences=field_differences, fault=_as_ipam_error(error, write)
            )
        if desired_manifest is None or not field_differences:
            return WriteResult(write)
        if context.dry_run or not write.send:
            return WriteResult(write, field_differences=field_differences)
        try:
            just_read = not fresh or attempt > 0
            return _send_once(
                context, write, desired_manifest, current, field_differences, just_read=just_read
            )
        except (faults.StaleVersion, faults.AlreadyExists, faults.NotFound) as error:
            stale_error = error
        except _OBJECT_FAULTS as error:
            return WriteResult(write, field_differences=field_differences, fault=error)
    return WriteResult(write, field_differences=field_differences, fault=stale_error)


def _as_ipam_error(error: Exception, write: Write) -> errors.IpamError:
    if isinstance(error, errors.IpamError):
        return error
    log.error(
        "the write of %s %s could not be computed", write.resource.kind, write.name, exc_info=error
    )
    return WriteNotComputed()


def _delete(context: SyncContext, write: Write, current: Manifest) -> WriteResult:
    """Delete exactly the object that `make` has returned."""
    metadata = current["metadata"]
    context.prove()
    context.client.delete(
        write.resource,
        write.name,
        write.namespace,
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
    )
    return WriteResult(write)


def _send_once(
    context: SyncContext,
    write: Write,
    desired_manifest: Manifest,
    current: Manifest | None,
    field_differences: _Differences,
    *,
    just_read: bool,
) -> WriteResult:
    """Write the object after a dry run; a write without effect is not sent, or it would repeat for ever."""
    if write.how == "delete":
        return _delete(context, write, desired_manifest)
    whole_manifest = desired_manifest
    if current is not None:
        desired_manifest = part_to_apply(write, desired_manifest, current)
        if not find_differences(write, desired_manifest, current):
            return WriteResult(
                write,
                field_differences=field_differences,
                fault=conflict_with_managers(write, field_differences),
            )
        _require_last_writer(
            context, write, whole_manifest, current, field_differences, just_read=just_read
        )
        # A write by another manager, or by a worker that took the cluster over, causes StaleVersion.
        version = current["metadata"]["resourceVersion"]
        desired_manifest = desired_manifest | {
            "metadata": desired_manifest["metadata"] | {"resourceVersion": version}
        }
    try:
        dry_run_result = _dry_run(context, write, desired_manifest)
    except (faults.Rejected, faults.ServerFault) as error:
        _upgrade_managers(context, write, current, error)
        raise
    if (
        dry_run_result is not None
        and current is not None
        and _is_unchanged(write, dry_run_result, current)
    ):
        return WriteResult(write, field_differences=field_differences, fault=FieldsNotKept())
    context.prove()
    stored = _write(context, write, desired_manifest, dry_run=False)
    remaining = find_differences(write, whole_manifest, stored)
    if remaining and write.how == "replace" and write.make(stored) is None:
        remaining = ()  # an older definition dropped members that the writer can do without
    conflict = conflict_with_managers(write, remaining)
    if conflict is None and remaining:
        return WriteResult(write, stored=stored, field_differences=remaining, fault=FieldsNotKept())
    # A part depends on what others have by then, so it says nothing of who wrote last.
    digest = "" if remaining else _digest(write, whole_manifest, stored)
    return WriteResult(write, stored, remaining, conflict, digest)


def _require_last_writer(
    context: SyncContext,
    write: Write,
    desired_manifest: Manifest,
    current: Manifest,
    field_differences: _Differences,
    *,
    just_read: bool,
) -> None:
    """Raise WrittenElsewhere if a field of our manager differs from what it wrote last, and still wants.

    An object that is older than what was written is written again: its cluster was restored. One that was not
    just read may be a copy from before our own write: StaleVersion.

    Two registers that both wrote it again would do so for ever, several times a second (rule
    `registers-do-not-fight`). Otherwise what was written last is forgotten: a write whose outcome
    remains unknown must not be taken for the last one.
    """
    uid = current["metadata"]["uid"]
    kind = write.resource.kind
    written = storage.written_digest(context.cluster.pk, kind, uid, manager=write.manager)
    if not written:
        return
    generation, _, digest = written.partition(" ")
    # One that is gone may have been dropped by whoever wrote through an older version.
    is_ours = any(
        difference.managers == (write.manager,) and difference.observed is not None
        for difference in field_differences
    )
    if is_ours and digest == _digest_of(desired_manifest):
        if not just_read:
            raise faults.StaleVersion
        if _generation(current) >= int(generation):
            raise WrittenElsewhere
    with context.transaction():
        storage.store_written(context.cluster.pk, kind, write.manager, {uid: ""})


def _generation(manifest: Manifest) -> int:
    return int(manifest["metadata"].get("generation", 0))


def _digest(write: Write, manifest: Manifest, stored: Manifest) -> str:
    """Return the generation of an object and a digest of what was applied to it; "" of other writes."""
    return f"{_generation(stored)} {_digest_of(manifest)}" if write.how == "apply" else ""


def _digest_of(manifest: Manifest) -> str:
    """Return a digest of what is to be written, without the times of conditions."""
    text = json.dumps(_without_times(manifest), sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_times(v) for k, v in value.items() if k != "lastTransitionTime"}
    return [_without_times(member) for member in value] if isinstance(value, list) else value


def part_to_apply(
    write: Write, desired_manifest: Manifest, current: Manifest, *, take: Collection[str] = ()
) -> Manifest:
    """Return the manifest to apply to an existing object, without fields that only other managers own."""
    if write.how != "apply" or write.subresource:
        return desired_manifest
    part = differences.part_to_apply(
        desired_manifest, current, structure=write.structure, manager=write.manager, take=take
    )
    return write.fit(part, current)


def conflict_with_managers(
    write: Write, field_differences: _Differences
) -> faults.FieldConflict | None:
    """Return the conflict with other managers of these fields, or None."""
    texts = [
        f"{difference.path} is owned by {', '.join(names)}"
        for difference in field_differences
        if (names := other_managers(difference, write.manager))
    ]
    return faults.FieldConflict("; ".join(texts)[:_LONGEST_CONFLICT]) if texts else None


def other_managers(difference: FieldDifference, manager: str) -> list[str]:
    """Return the other managers of the field."""
    return [name for name in difference.managers if name != manager]


def _upgrade_managers(
    context: SyncContext, write: Write, current: Manifest | None, error: faults.ClusterFault
) -> None:
    """Set the version of all managedFields entries to the written version.

    A server cannot apply fields that the version of another entry does not have (500). The entries keep
    their managers, operations and fields. Raises StaleVersion, so that the object is read again.
    """
    if current is None or error.status != http.HTTPStatus.INTERNAL_SERVER_ERROR:
        return
    entries = managed_fields.upgrade_entries(current, write.resource.api_version)
    if entries is None:
        return
    context.prove()
    changes = {"/metadata/managedFields": entries}
    context.client.patch(write.resource, current, changes, manager=write.manager)
    raise faults.StaleVersion("the version of managedFields was changed") from error


def _dry_run(context: SyncContext, write: Write, desired_manifest: Manifest) -> Manifest | None:
    """Return the result of a dry run; None if a webhook of the cluster does not support dry runs."""
    try:
        return _write(context, write, desired_manifest, dry_run=True)
    except faults.Rejected as error:
        if error.status == 400 and "dry run" in error.message:
            return None
        raise


def _write(
    context: SyncContext, write: Write, desired_manifest: Manifest, *, dry_run: bool
) -> Manifest:
    client = context.client
    if write.how == "replace" and not desired_manifest["metadata"].get("resourceVersion"):
        return client.create(
            write.resource, desired_manifest, manager=write.manager, dry_run=dry_run
        )
    send_request = client.replace if write.how == "replace" else client.apply
    return send_request(
        write.resource,
        desired_manifest,
        manager=write.manager,
        subresource=write.subresource,
        dry_run=dry_run,
    )


def find_differences(
    write: Write, desired_manifest: Manifest | None, current: Manifest | None
) -> _Differences:
    if desired_manifest is None:
        return ()
    if write.how == "delete":
        return (FieldDifference("metadata.deletionTimestamp", "now", None),)
    if write.how == "replace":
        return _replace_differences(write, desired_manifest, current or {})
    manager = "" if write.subresource else write.manager
    is_tracked = bool(managed_fields.parse(current or {}))
    return tuple(
        difference
        if is_tracked or difference.observed is None
        else replace(difference, managers=(_NOT_TRACKED,))
        for difference in differences.find_differences(
            desired_manifest, current or {}, structure=write.structure, manager=manager
        )
        if difference.path != "metadata.resourceVersion"
    )


def _replace_differences(
    write: Write, desired_manifest: Manifest, current: Manifest
) -> _Differences:
    """Return the differences of whole objects; fields that the desired object lacks differ too."""
    after, before = _content(desired_manifest), _content(current)
    if after == before:
        return ()
    changed_fields = differences.find_differences(after, current, structure=write.structure)
    removed_fields = [
        FieldDifference(difference.path, None, difference.desired, difference.managers)
        for difference in differences.find_differences(
            before, desired_manifest, structure=write.structure
        )
        if difference.observed is None
    ]
    return (*changed_fields, *removed_fields)


def _content(manifest: Manifest) -> Manifest:
    metadata: dict[str, Any] = manifest.get("metadata") or {}
    kept_fields = {key: value for key, value in metadata.items() if key not in _BOOKKEEPING}
    return manifest | {"metadata": kept_fields}


def _is_unchanged(write: Write, dry_run_result: Manifest, current: Manifest) -> bool:
    if _content(dry_run_result) != _content(current):
        return False
    # A replace does not claim ownership of fields.
    return write.how == "replace" or _owners(dry_run_result) == _owners(current)


def _owners(manifest: Manifest) -> list[dict[str, Any]]:
    entries = manifest["metadata"].get("managedFields") or []
    owner_entries = [{key: entry.get(key) for key in entry if key != "time"} for entry in entries]
    return sorted(
        owner_entries, key=lambda entry: (str(entry.get("manager")), str(entry.get("operation")))
    )
