"""Leases with fences: which worker works on a row, without a leader and without a broker.

A lease expires by itself; the next lease has the next fence. A worker that slept past its lease finds another
fence at its next write, and stops.
"""

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Generic, TypeVar

from django.db import DatabaseError, connection, models, transaction
from django.db.models import Q, QuerySet

from pools.core import errors
from pools.models.fields import Clock

FREE = Q(leased_until=None) | Q(leased_until__lt=Clock())

Row = TypeVar("Row", bound=models.Model)
log = logging.getLogger(__name__)


class LeaseLost(errors.Conflict):
    """Another worker has leased the row, or the row was removed."""

    code = "lease_lost"


@dataclass(frozen=True)
class Lease:
    """The right to work on a row until the lease expires; `fence` distinguishes it from earlier ones."""

    row_id: int
    fence: int


@dataclass(frozen=True)
class Leases(Generic[Row]):
    """The leases on the rows of `model`, which has the columns `fence` and `leased_until`.

    A row can be leased and a lease renewed while `condition` holds. `admits` is called in the
    transaction that takes a lease, with the row locked, and returns False to refuse it.
    """

    model: type[Row]
    condition: Q = field(default_factory=Q)
    seconds: int = 60  # duration of a lease, unless it is renewed
    admits: Callable[[int], bool] = lambda _row_id: True

    def take(self, row_id: int, condition: Q | None = None, **changes: Any) -> Lease | None:
        """Lease a row and change it; None if another worker has it, or a condition does not hold."""
        rows = self._rows().filter(FREE, self.condition, condition or Q(), pk=row_id)
        with transaction.atomic():
            fence = rows.select_for_update(skip_locked=True).values_list("fence", flat=True).first()
            if fence is None or not self.admits(row_id):
                return None
            changes |= {"fence": fence + 1, "leased_until": self._end()}
            self._rows().filter(pk=row_id).update(**changes)
        return Lease(row_id, fence + 1)

    def held(self, lease: Lease) -> QuerySet[Row]:
        """Return the row while the lease lasts, else no row."""
        return self._rows().filter(pk=lease.row_id, fence=lease.fence, leased_until__gt=Clock())

    def renew(self, lease: Lease) -> bool:
        """Extend a lease; False if it is lost."""
        return bool(self.held(lease).filter(self.condition).update(leased_until=self._end()))

    def end(self, lease: Lease, **changes: Any) -> bool:
        """Return a lease and change its row, unless another worker has leased it since."""
        rows = self._rows().filter(pk=lease.row_id, fence=lease.fence)
        return bool(rows.update(**{"leased_until": None} | changes))

    @contextlib.contextmanager
    def renewing(self, lease: Lease) -> Iterator[None]:
        """Renew a lease from a separate thread, however long a step takes.

        A process that is stopped does not renew. A lost lease is not reported here: every write proves
        the lease.
        """
        ended = threading.Event()

        def renew() -> None:
            try:
                while not ended.wait(self.seconds / 3):
                    try:
                        if not self.renew(lease):
                            return
                    except DatabaseError:
                        name = self.model._meta.label
                        log.warning("the lease of %s %s could not be renewed", name, lease.row_id)
                        connection.close()
            finally:
                connection.close()

        thread = threading.Thread(target=renew, daemon=True, name="lease")
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(5)

    def _rows(self) -> QuerySet[Row]:
        return self.model._default_manager.all()

    def _end(self) -> Any:
        return Clock() + timedelta(seconds=self.seconds)
