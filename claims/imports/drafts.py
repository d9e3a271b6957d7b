"""Imports of VMs: a file, list or form becomes a stored draft, which users correct and commit.

A small import is drafted and committed in the request. A large one is a row that waits for a worker
(claims/imports/worker.py). The request notifies the workers (claims/tasks.py); a lost message delays the
import by some seconds. Drafting and committing are one transaction each, so that no import is written in
part.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

from django.db.models import QuerySet

from claims.access import namespaces
from claims.imports import commit as import_commit
from claims.imports import mapping, states, uploads
from claims.imports import rows as import_rows
from claims.imports import undo as import_undo
from claims.imports.files import formats
from claims.models import ImportRow, VMImport
from claims.models.imports import ImportTarget, Status
from pools.core import errors
from pools.models.fields import Now
from pools.platform import events

SMALL = 2_000  # most rows of an import that is drafted and committed in the request


def is_limited(user: Any, target: str) -> bool:
    """Return True if the user may import for their own namespaces only. Raises NotAllowed."""
    model = "ipamclaim" if target == ImportTarget.IPAMCLAIMS else "entry"
    everything = user.has_perm(namespaces.EVERY_NAMESPACE)
    if everything and all(user.has_perm(f"claims.{verb}_{model}") for verb in ("add", "change")):
        return False
    if not user.has_perm("claims.request_address"):
        raise errors.NotAllowed(f"This needs the permission claims.add_{model}.")
    return True


def visible_imports(user: Any) -> QuerySet[VMImport]:
    """Return all imports for users who see all namespaces, and a user's own imports for others."""
    imports = VMImport.objects.select_related("cluster", "network", "user")
    return imports if user.has_perm(namespaces.EVERY_NAMESPACE) else imports.filter(user=user)


# --- a draft --------------------------------------------------------------------------------------


def create(
    upload: uploads.Upload, options: mapping.ImportOptions, *, author: events.Author
) -> VMImport:
    """Create an import: a small upload becomes a draft, a large one waits for a worker.

    With `options.commit` a small import is committed at once. If it has bad rows it stays a draft with
    the error. Raises InvalidInput for an unreadable upload; then no import is created.
    """
    reading = upload.open()
    rows = reading.rows()
    first_rows = list(islice(rows, SMALL + 1))
    vm_import = _new_import(upload, options, reading, author)
    if len(first_rows) > SMALL:
        with events.recorded_by(author):
            vm_import.rows_total = reading.total
            vm_import.save()
            uploads.store(upload, vm_import)
            mapping.remember_port_groups(vm_import, options)
        return vm_import
    with events.recorded_by(author):
        vm_import.save()
        mapping.remember_port_groups(vm_import, options)
        states.store_draft(vm_import, first_rows, reading, None)
    if options.commit:
        try:
            commit(vm_import.pk, skip_bad=options.skip_bad, author=author, user=options.user)
        except errors.ImportHasBadRows as error:
            states.record_error(vm_import.pk, error)
    return get(vm_import.pk)


def get(import_id: int) -> VMImport:
    return VMImport.objects.select_related("cluster", "network", "user").get(pk=import_id)


def _new_import(
    upload: uploads.Upload,
    options: mapping.ImportOptions,
    reading: formats.FileReading,
    author: events.Author,
) -> VMImport:
    return VMImport(
        cluster=options.cluster,
        target=options.target,
        network=options.network,
        namespace=options.namespace,
        mapping=mapping.parse(options),
        notes=list(options.notes),
        format=reading.format,
        file_name=import_rows.clean(upload.name, 255),
        commit_wanted=options.commit,
        skip_bad=options.skip_bad,
        user=options.user,
        limited=options.limited,
        actor=author.actor,
        source=author.source,
        request_id=author.request_id,
    )


# --- actions of users -----------------------------------------------------------------------------


def lock_import(import_id: int, *expected: Status, user: Any = None) -> VMImport:
    """Return the import with its row locked, if its status is one of `expected`.

    A user who is limited to own namespaces becomes the import's user and limits it. Raises ImportState,
    NotAllowed.
    """
    rows = VMImport.objects.select_for_update(of=("self",)).select_related("cluster", "user")
    vm_import = rows.get(pk=import_id)
    if vm_import.status not in expected:
        labels = " or ".join(str(status.label) for status in expected)
        raise errors.ImportState(
            f"Status of the import: {vm_import.get_status_display()}; required: {labels}."
        )
    if user is not None and is_limited(user, vm_import.target) and not vm_import.limited:
        vm_import.limited, vm_import.user = True, user
        vm_import.save(update_fields=["limited", "user"])
    return vm_import


def commit(
    import_id: int, *, skip_bad: bool = False, author: events.Author, user: Any = None
) -> VMImport:
    """Commit a draft, or with `skip_bad` all but its bad rows; a large draft waits for a worker.

    Raises ImportState, ImportHasBadRows, ClusterDecides, NotAllowed.
    """
    with events.recorded_by(author):
        vm_import = lock_import(import_id, Status.DRAFTED, user=user)
        vm_import.skip_bad = skip_bad
        if (vm_import.rows_total or 0) > SMALL:
            _check_bad(vm_import)
            states.queue_commit(vm_import, author, skip_bad=skip_bad)
        else:
            vm_import.counts = import_commit.commit_draft(
                vm_import, author=author, step=lambda _: None
            )
            states.mark_committed(vm_import)
    return get(import_id)


def _check_bad(vm_import: VMImport) -> None:
    if not vm_import.skip_bad and (vm_import.counts["conflict"] or vm_import.counts["refused"]):
        raise import_commit.bad_rows_error(vm_import.counts)


def undo(import_id: int, *, author: events.Author, user: Any = None) -> VMImport:
    """Undo a committed import; a large one waits for a worker (`undo_wanted`).

    Raises ImportState, ImportInUse, ClusterDecides, NotAllowed.
    """
    with events.recorded_by(author):
        vm_import = lock_import(import_id, Status.COMMITTED, user=user)
        if vm_import.undo_wanted:
            raise errors.ImportState("The import is already being undone.")
        if (vm_import.rows_total or 0) > SMALL:
            import_undo.check_not_in_use(vm_import)
            vm_import.undo_wanted, vm_import.tries, vm_import.rows_done = True, 0, 0
            vm_import.actor, vm_import.source, vm_import.request_id = (
                author.actor,
                author.source,
                author.request_id,
            )
            vm_import.save(
                update_fields=["undo_wanted", "tries", "rows_done", "actor", "source", "request_id"]
            )
        else:
            import_undo.undo(vm_import, author=author, step=lambda _: None)
            states.mark_undone(vm_import)
    return get(import_id)


def cancel(import_id: int, *, author: events.Author, user: Any = None) -> VMImport:
    """Discard a draft, or stop an import before its commit, and delete its rows.

    Raises ImportState if the import is committed or has ended.
    """
    cancellable = (Status.QUEUED, Status.DRAFTING, Status.DRAFTED, Status.COMMITTING)
    with events.recorded_by(author):
        vm_import = lock_import(import_id, *cancellable, user=user)
        VMImport.objects.filter(pk=vm_import.pk).update(cancel_wanted=True)
        idle = VMImport.objects.filter(pk=vm_import.pk).exclude(leased_until__gt=Now())
        if vm_import.status in {Status.QUEUED, Status.DRAFTED} or idle.exists():
            states.mark_cancelled(vm_import.pk, author)
    return get(import_id)


def change_mapping(
    import_id: int, values: Mapping[str, Any], *, author: events.Author, user: Any = None
) -> VMImport:
    """Change the network, namespace and mapping of a draft, and resolve and validate all rows again.

    The keys of `values` are `network` (a Network or None), `namespace` and `mapping`; `mapping` is merged
    into the existing one. Raises ImportState, InvalidInput, NotAllowed.
    """
    with events.recorded_by(author):
        vm_import = lock_import(import_id, Status.DRAFTED, user=user)
        vm_import.network = values.get("network", vm_import.network)
        vm_import.namespace = values.get("namespace", vm_import.namespace)
        options = mapping.ImportOptions(
            vm_import.cluster,
            mapping=values.get("mapping", {}),
            user=vm_import.user,
            limited=vm_import.limited,
        )
        vm_import.mapping = vm_import.mapping | mapping.parse(options)
        vm_import.save(update_fields=["network", "namespace", "mapping"])
        mapping.remember_port_groups(vm_import, options)
        import_rows.reread_rows(vm_import)
        states.revalidate(vm_import)
    return get(import_id)


def revalidate(import_id: int, *, author: events.Author, user: Any = None) -> VMImport:
    """Validate a draft against the current state of the register. Raises ImportState."""
    with events.recorded_by(author):
        states.revalidate(lock_import(import_id, Status.DRAFTED, user=user))
    return get(import_id)


def draft_rows(vm_import: VMImport) -> QuerySet[ImportRow]:
    return ImportRow.objects.filter(vm_import=vm_import).select_related("network")
