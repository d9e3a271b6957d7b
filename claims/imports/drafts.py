"""Imports of VMs: a file, list or form becomes a stored draft; people correct it, and have it written.

A small import is drafted and written while its sender waits. A large one is a row that waits for a
worker (import_worker): whoever makes one rings (claims/tasks.py), and a lost ring costs some seconds. Each
step, drafting and writing, is one transaction: there are no half imports.
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
from claims.models.imports import Status, Target
from pools.core import errors
from pools.models.fields import Now
from pools.platform import events

SMALL = 2_000  # rows that are drafted and written while the sender waits


def limited(user: Any, target: str) -> bool:
    """Whether somebody may import for namespaces of their own only. Raises NotAllowed."""
    model = "ipamclaim" if target == Target.IPAMCLAIMS else "entry"
    everything = user.has_perm(namespaces.EVERY_NAMESPACE)
    if everything and all(user.has_perm(f"claims.{verb}_{model}") for verb in ("add", "change")):
        return False
    if not user.has_perm("claims.request_address"):
        raise errors.NotAllowed(f"This needs the permission claims.add_{model}.")
    return True


def visible(user: Any) -> QuerySet[VMImport]:
    """All imports for those who see all namespaces, for others their own."""
    rows = VMImport.objects.select_related("cluster", "network", "user")
    return rows if user.has_perm(namespaces.EVERY_NAMESPACE) else rows.filter(user=user)


# --- a draft --------------------------------------------------------------------------------------


def create(upload: uploads.Upload, options: mapping.Options, *, author: events.Author) -> VMImport:
    """A draft, or an import that waits for a worker to make one.

    Raises InvalidInput for what cannot be read; then there is no import. With `commit` a small one is
    written at once, unless it has bad rows: then it stays a draft that says so.
    """
    reading = upload.open()
    rows = reading.rows()
    first = list(islice(rows, SMALL + 1))
    made = _row(upload, options, reading, author)
    if len(first) > SMALL:
        with events.recorded(author):
            made.rows_total = reading.total
            made.save()
            uploads.keep(upload, made)
            mapping.remember(made, options)
        return made
    with events.recorded(author):
        made.save()
        mapping.remember(made, options)
        states.draft(made, first, reading, None)
    if options.commit:
        try:
            commit(made.pk, skip_bad=options.skip_bad, author=author, user=options.user)
        except errors.ImportHasBadRows as error:
            states.tell(made.pk, error)
    return get(made.pk)


def get(import_id: int) -> VMImport:
    return VMImport.objects.select_related("cluster", "network", "user").get(pk=import_id)


def _row(
    upload: uploads.Upload,
    options: mapping.Options,
    reading: formats.Reading,
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


# --- what people do with a draft ------------------------------------------------------------------


def locked(import_id: int, *expected: Status, user: Any = None) -> VMImport:
    """The import, locked, in one of these states; whoever may do less than its maker limits it.

    Raises ImportState, NotAllowed.
    """
    rows = VMImport.objects.select_for_update(of=("self",)).select_related("cluster", "user")
    of = rows.get(pk=import_id)
    if of.status not in expected:
        words = " or ".join(str(one.label) for one in expected)
        raise errors.ImportState(f"It is {of.get_status_display()}; this is for one {words}.")
    if user is not None and limited(user, of.target) and not of.limited:
        of.limited, of.user = True, user
        of.save(update_fields=["limited", "user"])
    return of


def commit(
    import_id: int, *, skip_bad: bool = False, author: events.Author, user: Any = None
) -> VMImport:
    """Write a draft, all of it or (`skip_bad`) all but its bad rows; a large one waits for a worker.

    Raises ImportState, ImportHasBadRows, ClusterDecides, NotAllowed.
    """
    with events.recorded(author):
        of = locked(import_id, Status.DRAFTED, user=user)
        of.skip_bad = skip_bad
        if (of.rows_total or 0) > SMALL:
            _check_bad(of)
            states.to_commit(of, author, skip_bad=skip_bad)
        else:
            of.counts = import_commit.write(of, author=author, step=lambda _: None)
            states.committed(of)
    return get(import_id)


def _check_bad(of: VMImport) -> None:
    if not of.skip_bad and (of.counts["conflict"] or of.counts["refused"]):
        raise import_commit.bad_rows(of.counts)


def undo(import_id: int, *, author: events.Author, user: Any = None) -> VMImport:
    """Take back what an import wrote; what a large one wrote, a worker takes back (`undo_wanted`).

    Raises ImportState, ImportInUse, ClusterDecides, NotAllowed.
    """
    with events.recorded(author):
        of = locked(import_id, Status.COMMITTED, user=user)
        if of.undo_wanted:
            raise errors.ImportState("It is being undone already.")
        if (of.rows_total or 0) > SMALL:
            import_undo.refuse_used(of)
            of.undo_wanted, of.tries, of.rows_done = True, 0, 0
            of.actor, of.source, of.request_id = author.actor, author.source, author.request_id
            of.save(
                update_fields=[
                    "undo_wanted", "tries", "rows_done", "actor", "source", "request_id"
                ]
            )  # fmt: skip
        else:
            import_undo.undo(of, author=author, step=lambda _: None)
            states.undone(of)
    return get(import_id)


def cancel(import_id: int, *, author: events.Author, user: Any = None) -> VMImport:
    """Throw a draft away, or end what is under way before it is written; nothing of it stays.

    Raises ImportState: it is written already, or came to nothing.
    """
    open_ = (Status.QUEUED, Status.DRAFTING, Status.DRAFTED, Status.COMMITTING)
    with events.recorded(author):
        of = locked(import_id, *open_, user=user)
        VMImport.objects.filter(pk=of.pk).update(cancel_wanted=True)
        idle = VMImport.objects.filter(pk=of.pk).exclude(leased_until__gt=Now())
        if of.status in {Status.QUEUED, Status.DRAFTED} or idle.exists():
            states.cancelled(of.pk, author)
    return get(import_id)


def change(
    import_id: int, values: Mapping[str, Any], *, author: events.Author, user: Any = None
) -> VMImport:
    """Map a draft otherwise: `network` (a row or None), `namespace`, `mapping`; all rows are read again.

    The mapping is added to the one that there is. Raises ImportState, InvalidInput, NotAllowed.
    """
    with events.recorded(author):
        of = locked(import_id, Status.DRAFTED, user=user)
        of.network = values.get("network", of.network)
        of.namespace = values.get("namespace", of.namespace)
        options = mapping.Options(
            of.cluster, mapping=values.get("mapping", {}), user=of.user, limited=of.limited
        )
        of.mapping = of.mapping | mapping.parse(options)
        of.save(update_fields=["network", "namespace", "mapping"])
        mapping.remember(of, options)
        import_rows.read_again(of)
        states.judge(of)
    return get(import_id)


def check_again(import_id: int, *, author: events.Author, user: Any = None) -> VMImport:
    """Judge a draft by what the register says now. Raises ImportState."""
    with events.recorded(author):
        states.judge(locked(import_id, Status.DRAFTED, user=user))
    return get(import_id)


def rows_of(of: VMImport) -> QuerySet[ImportRow]:
    return ImportRow.objects.filter(vm_import=of).select_related("network")
