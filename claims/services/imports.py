"""Imports of VMs: a file, list or form becomes a stored draft; people correct it, and have it written.

A small import is drafted and written while its sender waits. A large one is a row that waits for a
worker (`work_off`): whoever makes one rings (claims/tasks.py), and a lost ring costs some seconds. Each
step, drafting and writing, is one transaction: there are no half imports.
"""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, BinaryIO

from django.db import DatabaseError
from django.db.models import QuerySet

from claims.core.vm_import.found import Found
from claims.models import ImportFile, ImportRow, Network, PortGroup, VMImport
from claims.models.imports import Status, Target
from claims.services import (
    access,
    import_check,
    import_commit,
    import_files,
    import_rows,
    import_undo,
    import_work,
)
from claims.services.import_work import Cancelled, Work
from pools import database, events
from pools.core import errors, holders
from pools.models import Cluster
from pools.models.fields import Now
from pools.reconcile import leases

SMALL = 2_000  # rows that are drafted and written while the sender waits
MOST_PORT_GROUPS = 1_000

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Upload:
    """What was sent: `file` (a stream), `text` that was pasted, or `rows` of a JSON list."""

    kind: str
    content: Any
    name: str = ""

    def open(self, *, counted: bool = False) -> import_files.Reading:
        """Raises InvalidInput. `counted`: it was opened before, when it came."""
        if self.kind == "rows":
            return import_files.from_rows(self.content)
        if self.kind == "text":
            return import_files.from_text(self.content)
        stream: BinaryIO = self.content
        stream.seek(0)
        return import_files.open_file(self.name, stream, counted=counted)

    def stored(self) -> bytes:
        """The same as bytes, for a worker."""
        if self.kind == "rows":
            return json.dumps(self.content).encode()
        if self.kind == "text":
            return str(self.content).encode()
        self.content.seek(0)
        found: bytes = self.content.read()
        return found


def _of_file(file: ImportFile, name: str) -> Upload:
    content = bytes(file.content)
    if file.kind == "rows":
        return Upload("rows", json.loads(content))
    if file.kind == "text":
        return Upload("text", content.decode())
    return Upload("file", io.BytesIO(content), name)


@dataclass(frozen=True)
class Options:
    """Where the rows go; `mapping` is `{port group: {"network": id, "namespace": ""}}`.

    With a network, port groups that are not mapped go there; without one, to the network of their
    name, or where they went last. `limited`: `user` may write for namespaces of their own only.
    """

    cluster: Cluster
    target: str = Target.IPPOOL.value
    network: Network | None = None
    namespace: str = ""
    mapping: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    commit: bool = False
    skip_bad: bool = False
    user: Any = None
    limited: bool = False


def limited(user: Any, target: str) -> bool:
    """Whether somebody may import for namespaces of their own only. Raises NotAllowed."""
    model = "ipamclaim" if target == Target.IPAMCLAIMS else "entry"
    everything = user.has_perm(access.EVERY_NAMESPACE)
    if everything and all(user.has_perm(f"claims.{verb}_{model}") for verb in ("add", "change")):
        return False
    if not user.has_perm("claims.request_address"):
        raise errors.NotAllowed(f"This needs the permission claims.add_{model}.")
    return True


def visible(user: Any) -> QuerySet[VMImport]:
    """All imports for those who see all namespaces, for others their own."""
    rows = VMImport.objects.select_related("cluster", "network", "user")
    return rows if user.has_perm(access.EVERY_NAMESPACE) else rows.filter(user=user)


# --- a draft --------------------------------------------------------------------------------------


def create(upload: Upload, options: Options, *, by: events.Author) -> VMImport:
    """A draft, or an import that waits for a worker to make one.

    Raises InvalidInput for what cannot be read; then there is no import. With `commit` a small one is
    written at once, unless it has bad rows: then it stays a draft that says so.
    """
    reading = upload.open()
    rows = reading.rows()
    first = list(islice(rows, SMALL + 1))
    made = _row(upload, options, reading, by)
    if len(first) > SMALL:
        with events.recorded(by):
            made.rows_total = reading.total
            made.save()
            database.rows(_KEEP_FILE, [made.pk, upload.kind, upload.stored()], prepare=False)
            _remember(made, options)
        return made
    with events.recorded(by):
        made.save()
        _remember(made, options)
        _draft(made, first, reading, None)
    if options.commit:
        try:
            commit(made.pk, skip_bad=options.skip_bad, by=by, user=options.user)
        except errors.ImportHasBadRows as error:
            _tell(made.pk, error)
    return get(made.pk)


# As bytes: twenty megabytes would become forty of text.
_KEEP_FILE = """
    INSERT INTO claims_importfile (vm_import_id, kind, content) VALUES (%s, %s, %b) RETURNING id
"""


def get(import_id: int) -> VMImport:
    return VMImport.objects.select_related("cluster", "network", "user").get(pk=import_id)


def _row(
    upload: Upload, options: Options, reading: import_files.Reading, by: events.Author
) -> VMImport:
    return VMImport(
        cluster=options.cluster,
        target=options.target,
        network=options.network,
        namespace=options.namespace,
        mapping=parse_mapping(options),
        format=reading.format,
        file_name=import_rows.clean(upload.name, 255),
        commit_wanted=options.commit,
        skip_bad=options.skip_bad,
        user=options.user,
        limited=options.limited,
        actor=by.actor,
        source=by.source,
        request_id=by.request_id,
    )


def parse_mapping(options: Options, *, field: str = "mapping") -> dict[str, dict[str, Any]]:
    """The mapping as it is stored; networks of another cluster, or that are not seen, are unknown.

    Raises InvalidInput: wrong_type, too_many, unknown_field, unknown_network, k8s_name.
    """
    given = options.mapping
    if len(given) > MOST_PORT_GROUPS:
        message = f"at most {MOST_PORT_GROUPS} port groups"
        raise errors.InvalidInput.of(field, "too_many", message)
    seen = access.own(options.user) if options.limited else access.EVERYTHING
    known = access.visible(Network.objects.filter(cluster=options.cluster), seen)
    wanted = {to.get("network") for to in given.values() if isinstance(to, Mapping)}
    numbers = [one for one in wanted if isinstance(one, int) and 0 < one < 1 << 62]
    networks = set(known.filter(pk__in=numbers).values_list("pk", flat=True))
    found: dict[str, dict[str, Any]] = {}
    for name, to in given.items():
        at = f"{field}.{errors.shown(name)}"
        if not isinstance(to, Mapping) or to.keys() - {"network", "namespace"}:
            message = 'an object {"network": id, "namespace": name} is expected'
            raise errors.InvalidInput.of(at, "wrong_type", message)
        network, namespace = to.get("network"), to.get("namespace") or ""
        if network is not None and (isinstance(network, bool) or network not in networks):
            message = f"{options.cluster} has no such network"
            raise errors.InvalidInput.of(f"{at}.network", "unknown_network", message, network)
        if namespace:
            holders.parse_name(namespace, field=f"{at}.namespace", kind="label")
        key = import_rows.clean(name)
        found[key] = {"network": network, "namespace": namespace}
    return found


def _remember(of: VMImport, options: Options) -> None:
    """The next file of this cluster has the same port groups; what a VM owner says is theirs alone."""
    known = [
        PortGroup(
            cluster_id=of.cluster_id, name=name, network_id=to["network"], namespace=to["namespace"]
        )
        for name, to in of.mapping.items()
        if to["network"] and name
    ]
    if known and not options.limited:
        PortGroup.objects.bulk_create(
            known,
            update_conflicts=True,
            unique_fields=["cluster", "name"],
            update_fields=["network", "namespace"],
        )


def _draft(
    of: VMImport, rows: Iterable[Found], reading: import_files.Reading, work: Work | None
) -> None:
    def step(done: int) -> None:
        if work is not None:
            work.done = done
            import_work.prove(work)

    of.rows_total = of.rows_done = import_rows.store(of, rows, step)
    import_check.judge(of)
    of.left_out = dict(reading.skipped)
    of.notes = [{"code": one.code, "message": one.message} for one in reading.notes]
    _drafted(of)
    if work is not None:
        import_work.end(work)
    ImportFile.objects.filter(vm_import=of).delete()
    of.save(update_fields=["rows_total", "rows_done", "left_out", "notes", *_DRAFTED])


_DRAFTED = ("status", "counts", "drafted_at", "error_code", "error")


def _drafted(of: VMImport) -> None:
    of.status = Status.DRAFTED
    of.counts = import_check.count(of)
    of.drafted_at = Now()
    of.error_code = of.error = ""


def _tell(import_id: int, error: errors.IpamError) -> None:
    """Why a draft was not written."""
    VMImport.objects.filter(pk=import_id, status=Status.DRAFTED).update(
        error_code=error.code[:63], error=error.message[:1000]
    )


# --- a worker -------------------------------------------------------------------------------------


def work_off(import_id: int) -> bool:
    """Draft and write an import that waits, as far as it goes; whether there was something to do.

    Never raises for what is wrong with the import: its row says it.
    """
    worked = False
    while (work := import_work.take(import_id)) is not None:
        worked = True
        if not _worked(work):
            break
    return worked


def _worked(work: Work) -> bool:
    """Whether to look for more to do."""
    of = get(work.import_id)
    try:
        import_work.refuse_hopeless(work)
        with import_work.kept(work):
            if of.undo_wanted:
                _undo_large(of, work)
            elif of.status == Status.COMMITTING:
                _commit_large(of, work)
            else:
                _draft_large(of, work)
    except Cancelled:
        _cancelled(of.pk, _author(of))
    except leases.LeaseLost:
        log.warning("import %s went on elsewhere", of.pk)
        return False
    except DatabaseError:
        log.exception("import %s will be tried again", of.pk)
        import_work.put_back(work, seconds=5 * work.tries)
        return False
    except errors.IpamError as error:
        _failed(of, work, error.code, error.message)
    except Exception:
        log.exception("import %s has failed", of.pk)
        _failed(of, work, "internal_error", "It could not be done; the log says why.")
    return True


def _failed(of: VMImport, work: Work, code: str, message: str) -> None:
    ended = import_work.not_undone if of.undo_wanted else import_work.failed
    ended(work, code, message)


def _author(of: VMImport) -> events.Author:
    return events.Author(of.actor, of.source or "worker", of.request_id, f"import {of.pk}")


def _draft_large(of: VMImport, work: Work) -> None:
    reading = _of_file(ImportFile.objects.get(vm_import=of), of.file_name).open(counted=True)
    with events.recorded(_author(of)):
        _draft(of, reading.rows(), reading, work)
        if of.commit_wanted:
            _to_commit(of, _author(of), skip_bad=of.skip_bad)


def _commit_large(of: VMImport, work: Work) -> None:
    def step(done: int) -> None:
        work.done = done
        import_work.prove(work)

    by = _author(of)
    try:
        with events.recorded(by):
            of.counts = import_commit.write(of, by=by, step=step)
            import_work.end(work)
            _committed(of)
    except (errors.ImportHasBadRows, errors.ClusterDecides) as error:
        with events.recorded(by):
            import_work.end(work)
            import_check.judge(of)
            _drafted(of)
            of.save(update_fields=_DRAFTED)
            _tell(of.pk, error)


def _undo_large(of: VMImport, work: Work) -> None:
    def step(done: int) -> None:
        work.done = done
        import_work.prove(work)

    by = _author(of)
    try:
        with events.recorded(by):
            import_undo.undo(of, by=by, step=step)
            import_work.end(work)
            _undone(of)
    except (errors.ImportInUse, errors.ClusterDecides) as error:
        import_work.not_undone(work, error.code, error.message)


def _committed(of: VMImport) -> None:
    of.status = Status.COMMITTED
    of.committed_at = Now()
    of.rows_done = of.rows_total or 0
    of.error_code = of.error = ""
    of.save(
        update_fields=[
            "status", "counts", "committed_at", "rows_done", "skip_bad", "error_code", "error"
        ]
    )  # fmt: skip


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
    import_id: int, *, skip_bad: bool = False, by: events.Author, user: Any = None
) -> VMImport:
    """Write a draft, all of it or (`skip_bad`) all but its bad rows; a large one waits for a worker.

    Raises ImportState, ImportHasBadRows, ClusterDecides, NotAllowed.
    """
    with events.recorded(by):
        of = locked(import_id, Status.DRAFTED, user=user)
        of.skip_bad = skip_bad
        if (of.rows_total or 0) > SMALL:
            _check_bad(of)
            _to_commit(of, by, skip_bad=skip_bad)
        else:
            of.counts = import_commit.write(of, by=by, step=lambda _: None)
            _committed(of)
    return get(import_id)


def _check_bad(of: VMImport) -> None:
    if not of.skip_bad and (of.counts["conflict"] or of.counts["refused"]):
        raise import_commit.bad_rows(of.counts)


def _to_commit(of: VMImport, by: events.Author, *, skip_bad: bool) -> None:
    of.status, of.skip_bad, of.tries = Status.COMMITTING, skip_bad, 0
    of.rows_done, of.leased_until, of.started_at = 0, None, None
    of.actor, of.source, of.request_id = by.actor, by.source, by.request_id
    of.save(
        update_fields=[
            "status", "skip_bad", "tries", "rows_done", "leased_until", "started_at", "actor",
            "source", "request_id",
        ]
    )  # fmt: skip


def undo(import_id: int, *, by: events.Author, user: Any = None) -> VMImport:
    """Take back what an import wrote; what a large one wrote, a worker takes back (`undo_wanted`).

    Raises ImportState, ImportInUse, ClusterDecides, NotAllowed.
    """
    with events.recorded(by):
        of = locked(import_id, Status.COMMITTED, user=user)
        if of.undo_wanted:
            raise errors.ImportState("It is being undone already.")
        if (of.rows_total or 0) > SMALL:
            import_undo.refuse_used(of)
            of.undo_wanted, of.tries, of.rows_done = True, 0, 0
            of.actor, of.source, of.request_id = by.actor, by.source, by.request_id
            of.save(
                update_fields=[
                    "undo_wanted", "tries", "rows_done", "actor", "source", "request_id"
                ]
            )  # fmt: skip
        else:
            import_undo.undo(of, by=by, step=lambda _: None)
            _undone(of)
    return get(import_id)


def _undone(of: VMImport) -> None:
    of.status = Status.UNDONE
    of.undone_at = Now()
    of.rows_done = of.rows_total or 0
    of.error_code = of.error = ""
    of.save(update_fields=["status", "undone_at", "rows_done", "error_code", "error"])


def cancel(import_id: int, *, by: events.Author, user: Any = None) -> VMImport:
    """Throw a draft away, or end what is under way before it is written; nothing of it stays.

    Raises ImportState: it is written already, or came to nothing.
    """
    open_ = (Status.QUEUED, Status.DRAFTING, Status.DRAFTED, Status.COMMITTING)
    with events.recorded(by):
        of = locked(import_id, *open_, user=user)
        VMImport.objects.filter(pk=of.pk).update(cancel_wanted=True)
        idle = VMImport.objects.filter(pk=of.pk).exclude(leased_until__gt=Now())
        if of.status in {Status.QUEUED, Status.DRAFTED} or idle.exists():
            _cancelled(of.pk, by)
    return get(import_id)


def _cancelled(import_id: int, by: events.Author) -> None:
    with events.recorded(by):
        VMImport.objects.filter(pk=import_id).update(
            status=Status.CANCELLED, leased_until=None, cancel_wanted=True
        )
        import_work.forget(import_id)


def change(
    import_id: int, values: Mapping[str, Any], *, by: events.Author, user: Any = None
) -> VMImport:
    """Map a draft otherwise: `network` (a row or None), `namespace`, `mapping`; all rows are read again.

    The mapping is added to the one that there is. Raises ImportState, InvalidInput, NotAllowed.
    """
    with events.recorded(by):
        of = locked(import_id, Status.DRAFTED, user=user)
        of.network = values.get("network", of.network)
        of.namespace = values.get("namespace", of.namespace)
        options = Options(
            of.cluster, mapping=values.get("mapping", {}), user=of.user, limited=of.limited
        )
        of.mapping = of.mapping | parse_mapping(options)
        of.save(update_fields=["network", "namespace", "mapping"])
        _remember(of, options)
        import_rows.read_again(of)
        judge(of)
    return get(import_id)


def judge(of: VMImport, numbers: list[int] | None = None) -> None:
    """Judge a draft again, or some of its rows, and count."""
    import_check.judge(of, numbers)
    _drafted(of)
    of.save(update_fields=_DRAFTED)


def check_again(import_id: int, *, by: events.Author, user: Any = None) -> VMImport:
    """Judge a draft by what the register says now. Raises ImportState."""
    with events.recorded(by):
        judge(locked(import_id, Status.DRAFTED, user=user))
    return get(import_id)


def port_groups(of: VMImport) -> list[dict[str, Any]]:
    """The port groups of an import with the number of their rows, and where these go.

    `[{"name", "rows", "network", "namespace"}]`; network null where nobody has said it.
    """
    to = import_rows.Destinations(of)
    found = []
    for name, count in database.rows(_PORT_GROUPS, [of.pk]):
        there = to.of(name)
        found.append(
            {
                "name": name,
                "rows": count,
                "network": there.network_id if there else None,
                "namespace": there.namespace if there else "",
            }
        )
    return found


_PORT_GROUPS = """
    SELECT port_group, count(*) FROM claims_importrow WHERE vm_import_id = %s
    GROUP BY port_group ORDER BY port_group LIMIT 1000
"""


def rows_of(of: VMImport) -> QuerySet[ImportRow]:
    return ImportRow.objects.filter(vm_import=of).select_related("network")
