"""Migration waves: VMs that are migrated together; they need not exist in the cluster yet."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from claims.core import entries
from claims.models import VMImport, Wave, WaveVM
from pools.core import errors, holders
from pools.models import Cluster, RowStatus
from pools.platform import database, events

MOST_VMS = 10_000
_TO_MIGRATE = (RowStatus.NEW, RowStatus.CHANGED, RowStatus.UNCHANGED)
VM = tuple[str, str]  # namespace, name


def create(
    cluster: Cluster,
    name: str,
    *,
    planned_at: datetime | None = None,
    note: str = "",
    author: events.Author,
) -> Wave:
    """Create a wave. Raises InvalidInput, AlreadyExists."""
    values = {"name": name, "planned_at": planned_at, "note": note}
    with events.recorded_by(author):
        return _save(Wave(cluster=cluster), values)


def change(
    wave_id: int,
    values: Mapping[str, Any],
    *,
    author: events.Author,
    version: database.Version = None,
) -> Wave:
    """Change `name`, `planned_at` or `note` of a wave.

    Raises NotFound, VersionMismatch, InvalidInput, AlreadyExists.
    """
    with events.recorded_by(author):
        wave = get(wave_id, lock=True)
        database.require_version(wave, version)
        return _save(wave, values)


def _save(wave: Wave, values: Mapping[str, Any]) -> Wave:
    if "name" in values:
        wave.name = holders.parse_reason(values["name"], field="name")
    if "note" in values:
        wave.note = holders.parse_description(values["note"], field="note")
    wave.planned_at = values.get("planned_at", wave.planned_at)
    same_name = Wave.objects.filter(cluster=wave.cluster_id, name=wave.name).exclude(pk=wave.pk)
    if same_name.exists():
        raise errors.AlreadyExists(f"The cluster {wave.cluster} already has a wave {wave.name}.")
    database.save(wave)
    return wave


def delete(wave_id: int, *, author: events.Author) -> None:
    """Delete a wave; its VMs and their registrations stay. Raises NotFound."""
    with events.recorded_by(author):
        get(wave_id, lock=True).delete()


def get(wave_id: int, *, lock: bool = False) -> Wave:
    rows = Wave.objects.select_related("cluster")
    wave = (rows.select_for_update(of=("self",)) if lock else rows).filter(pk=wave_id).first()
    if wave is None:
        raise errors.NotFound("There is no such object.")
    return wave


def add(wave_id: int, vms: Sequence[VM], *, author: events.Author) -> int:
    """Add VMs to a wave, by namespace and name, and return how many were new.

    Raises NotFound, InvalidInput (k8s_name, too_many).
    """
    wave_vms = [
        WaveVM(
            wave_id=wave_id,
            namespace=entries.parse_namespace(namespace, f"vms.{index}.namespace"),
            vm=holders.parse_name(vm, field=f"vms.{index}.vm"),
        )
        for index, (namespace, vm) in enumerate(vms)
    ]
    return _add(wave_id, wave_vms, author)


def add_import(
    wave_id: int,
    vm_import: VMImport,
    *,
    statuses: Collection[str] = _TO_MIGRATE,
    author: events.Author,
) -> int:
    """Add the VMs of an import to a wave, and return how many were new.

    By default these are the VMs that the import registers; `statuses` selects rows of other statuses.
    """
    rows = vm_import.rows.filter(status__in=statuses).exclude(values__vm="").order_by("number")
    wave_vms = {
        (row.namespace, row.vm): WaveVM(
            wave_id=wave_id, namespace=row.namespace, vm=row.vm, source_vm=row.source_vm
        )
        for row in rows
    }
    return _add(wave_id, list(wave_vms.values()), author)


def _add(wave_id: int, wave_vms: Sequence[WaveVM], author: events.Author) -> int:
    with events.recorded_by(author):
        get(wave_id, lock=True)
        rows = WaveVM.objects.filter(wave=wave_id)
        before = rows.count()
        WaveVM.objects.bulk_create(wave_vms, ignore_conflicts=True)
        after = rows.count()  # those that the wave has already do not count twice
        if after > MOST_VMS:
            message = f"a wave has at most {MOST_VMS} VMs"
            raise errors.InvalidInput.for_field("vms", "too_many", message)
    return after - before


def remove(wave_id: int, ids: Collection[int], *, author: events.Author) -> int:
    """Remove VMs from a wave by the ids of their rows, and return their number. Raises NotFound."""
    with events.recorded_by(author):
        get(wave_id, lock=True)
        deleted_count, _ = WaveVM.objects.filter(wave=wave_id, pk__in=ids).delete()
    return deleted_count
