"""The leases of VM imports."""

from __future__ import annotations

from claims.models import VMImport
from pools.platform.import_leases import TRIES, Cancelled, ImportLeases, Work
from pools.platform.leases import LeaseLost

__all__ = ["TRIES", "Cancelled", "LeaseLost", "Work"]

_LEASES = ImportLeases(
    VMImport,
    "DELETE FROM claims_importrow WHERE vm_import_id = %s RETURNING 1",
    "DELETE FROM claims_importfile WHERE vm_import_id = %s RETURNING 1",
)
due_imports = _LEASES.due_imports
take = _LEASES.take
check_tries = _LEASES.check_tries
keep_alive = _LEASES.keep_alive
prove = _LEASES.prove
end = _LEASES.end
requeue = _LEASES.requeue
mark_failed = _LEASES.mark_failed
mark_undo_failed = _LEASES.mark_undo_failed
discard = _LEASES.discard
