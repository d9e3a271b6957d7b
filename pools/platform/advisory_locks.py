"""All advisory locks of PostgreSQL that the product takes; each ends with its transaction.

POOL, CONNECTION and the locks of imports are first keys; the second key is the id of the row. Locks are taken in this order: first the
cluster (a sync run takes its CONNECTION lock, a change in the register locks the connection's row by
`leases.nudge`), then POOL locks by ascending id, then other rows. So a transaction that has locked rows never
waits for a POOL lock. The other locks are taken one at a time, at the beginning of a job. SQL files
repeat the numbers: tests/pools/test_statements.py compares them.
"""

from typing import Final

from pools.platform import database

# The window, free spans, CIDRs and reserved ranges of one pool. The triggers of pools/sql/rules.sql
# take it too, when CIDRs or mask sizes change.
POOL: Final = 4242
# The rows of one connection's cluster: shared by transactions that write them under its lease,
# exclusive before all of it is deleted, and (without waiting) to find out whether one is still open.
CONNECTION: Final = 4243
# Utilization samples: two samplings at once would wait for each other's rows in turn.
UTILIZATION_SAMPLES: Final = 4245
# The address plan (the second key is 0): exclusive for containers and the next free prefix of one, shared for other
# changes that somebody makes to CIDRs of pools and clusters. It is taken before the locks of clusters and pools, by a
# transaction that holds no other lock yet.
ADDRESS_PLAN: Final = 4246
# The addresses of a namespace that have a quota (the second key is a hash of cluster and namespace): taken before the
# locks of clusters and pools, by a transaction that holds no other lock yet.
QUOTA: Final = 4247
# The evaluation of conditions (the second key is 0): one at a time; another evaluation is skipped.
CONDITIONS: Final = 4251
# One import: the worker that drafts, commits or undoes it (pools/platform/imports/worker.py), without waiting.
IMPORT: Final = 4252


def lock_plan(*, shared: bool = False) -> None:
    """Take the lock of the address plan, before any other lock, until the transaction ends.

    `shared` keeps others from choosing a free prefix, and not from writing CIDRs as well.
    """
    take(ADDRESS_PLAN, shared=shared)


def take(lock: int, row_id: int = 0, *, shared: bool = False) -> None:
    """Take a lock until the transaction ends; wait for it."""
    mode = "_shared" if shared else ""
    database.rows(f"SELECT pg_advisory_xact_lock{mode}(%s::int, %s::int)", [lock, row_id])


def try_lock(lock: int, row_id: int = 0) -> bool:
    """Take a lock until the transaction ends; return False if another transaction has it."""
    taken: bool = database.call(
        "SELECT pg_try_advisory_xact_lock(%s::int, %s::int)", [lock, row_id]
    )
    return taken
