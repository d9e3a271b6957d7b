"""Allocation requests: require an owner, record refusals, and queue requests that wait for space.

A refusal writes only its event and the status of the environment (rule `exhaustion-is-definite`). A
pending request is a row; workers retry it each cycle and when space is released.
"""

import time
from datetime import timedelta
from functools import lru_cache, partial
from ipaddress import ip_network
from typing import Any

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection
from django.db.models import F, QuerySet

from pools.clusters import recovery_mode
from pools.core import errors, holders
from pools.core.block_fields import BlockAnswer
from pools.core.holders import BlockDemand
from pools.models import AllocationRequest, Block, BlockState, Category, Environment, Now, Pool
from pools.models.requests import RequestState
from pools.platform import database, events, idempotency, process_metrics
from pools.register.allocator import allocation, window
from pools.sql import statements

RETRY_EVERY = timedelta(seconds=30)
BATCH = 200  # pending requests of one pool that are retried in one cycle


def allocate(
    pool_id: int,
    demand: allocation.BlockDemand,
    *,
    author: events.Author,
    key: idempotency.Key | None = None,
    wait: bool = False,
) -> allocation.Allocation | AllocationRequest:
    """Allocate now, or with `wait` create a pending request if the pool is exhausted.

    Raises what `allocation.allocate` raises, PoolExhausted only without `wait`; InvalidInput
    `owner_required` if org, env or the kind of holder is missing (pools/register/allocator/requests.py).
    """
    require_owner(pool_id, demand)
    started = time.perf_counter()
    try:
        return _allocate(pool_id, demand, author, key, wait=wait)
    except (OperationalError, InterfaceError, errors.Unavailable) as error:
        _count_failure(error)
        raise
    finally:
        _observe(started)


def _count_failure(error: Exception) -> None:
    # No event is written, and the category of the pool is unknown here.
    labels = {"category": "unknown"}
    process_metrics.count("ipam_allocations_total", **labels, result="failed")
    code = error.code if isinstance(error, errors.IpamError) else errors.Unavailable.code
    process_metrics.count("ipam_allocation_failures_total", **labels, reason=code)


def _observe(started: float) -> None:
    process_metrics.observe("ipam_allocation_duration_seconds", time.perf_counter() - started)


def _allocate(
    pool_id: int,
    demand: allocation.BlockDemand,
    author: events.Author,
    key: idempotency.Key | None,
    *,
    wait: bool,
) -> allocation.Allocation | AllocationRequest:
    try:
        result = allocation.allocate(pool_id, demand, author=author, key=key)
    except errors.PoolExhausted as error:
        exhausted = error
    else:
        if isinstance(result, allocation.Allocation):
            return result
        return _get_request(result.request_id)
    return database.with_retries(
        lambda: _refuse_or_queue(pool_id, demand, exhausted, author, key, wait=wait)
    )


def _refuse_or_queue(
    pool_id: int,
    demand: allocation.BlockDemand,
    error: errors.PoolExhausted,
    author: events.Author,
    key: idempotency.Key | None,
    *,
    wait: bool,
) -> AllocationRequest:
    with events.recorded_by(author):
        if demand.reuse and wait:
            window.lock(pool_id)  # before any row
            if (waiting := _find_waiting(pool_id, demand)) is not None:
                return waiting
        pool = Pool.objects.filter(pk=pool_id).first()
        if pool is None:  # deleted since it had no block left
            raise errors.NotFound("There is no such pool.")
        _record_refusal(pool, demand, error, author)
        if wait:
            return _queue_request(pool, demand, error, key)
    raise error


def _find_waiting(pool_id: int, demand: allocation.BlockDemand) -> AllocationRequest | None:
    """Return the pending request with the same demand, so that a repeated one does not wait twice."""
    pending = AllocationRequest.objects.filter(
        pool_id=pool_id, state=RequestState.PENDING, demand=demand_to_json(demand)
    )
    return pending.order_by("id").first()


def _record_refusal(
    pool: Pool, demand: allocation.BlockDemand, error: errors.PoolExhausted, author: events.Author
) -> None:
    holder = demand.holders[0]
    events.record_allocation_failure(
        pool,
        holder=(holder.kind, holder.id),
        org=demand.org,
        env=demand.environment,
        code=error.code,
        message=error.message,
        author=author,
    )
    for environment in demand.environments:
        Environment.objects.get_or_create(
            cluster_id=pool.cluster_id, org=demand.org, env=environment
        )
        Environment.objects.filter(
            cluster_id=pool.cluster_id, org=demand.org, env=environment, degraded_since=None
        ).update(
            degraded_since=Now(),
            reason=error.code,
            message=error.message,
            refusing_pool=pool,
        )


def _queue_request(
    pool: Pool,
    demand: allocation.BlockDemand,
    error: errors.PoolExhausted,
    key: idempotency.Key | None,
) -> AllocationRequest:
    def create_request() -> idempotency.StoredAnswer:
        request = AllocationRequest.objects.create(
            pool=pool,
            demand=demand_to_json(demand),
            holder_kind=demand.holders[0].kind,
            holder_id=demand.holders[0].id,
            org=demand.org,
            env=demand.environment,
            last_error=error.message,
            created_at=Now(),
            next_try_at=Now() + RETRY_EVERY,
        )
        return idempotency.StoredAnswer(202, {"request": request.pk})

    return _get_request(idempotency.run_once(key, create_request).answer["request"])


def _get_request(request_id: int) -> AllocationRequest:
    request = AllocationRequest.objects.filter(pk=request_id).first()
    if request is None:
        raise errors.NotFound("There is no such request.")
    return request


# --- pending requests -----------------------------------------------------------------------------


def retry(pool_id: int | None = None, *, author: events.Author = events.WORKER) -> int:
    """Retry the pending requests of a pool, or all that are due, oldest first.

    Returns how many succeeded. Several workers may run it at once: a request that another worker is
    retrying is skipped. In recovery mode no request is retried.
    """
    if recovery_mode.current_recovery() is not None:
        return 0
    due = AllocationRequest.objects.filter(state=RequestState.PENDING)
    due = due.filter(next_try_at__lte=Now()) if pool_id is None else due.filter(pool_id=pool_id)
    pools = due.order_by("pool_id").values_list("pool_id", flat=True).distinct()
    return sum(_retry_pool(due_pool_id, due, author) for due_pool_id in list(pools))


def _retry_pool(pool_id: int, due: QuerySet[AllocationRequest], author: events.Author) -> int:
    """Retry requests in the order of their creation; stop when the pool is exhausted."""
    fulfilled = 0
    waiting = due.filter(pool_id=pool_id).order_by("id").values_list("pk", flat=True)
    for request_id in list(waiting[:BATCH]):
        outcome = database.with_retries(partial(_retry_request, pool_id, request_id, author))
        if outcome == RequestState.PENDING:
            _postpone(pool_id)
            break
        fulfilled += outcome == RequestState.FULFILLED
    return fulfilled


def _postpone(pool_id: int) -> None:
    """Postpone all due requests of an exhausted pool to its next turn."""
    AllocationRequest.objects.filter(
        pool_id=pool_id, state=RequestState.PENDING, next_try_at__lte=Now()
    ).update(next_try_at=Now() + RETRY_EVERY)


def _retry_request(pool_id: int, request_id: int, author: events.Author) -> RequestState | None:
    """Return the request's new state, or None if another worker is retrying it."""
    with events.recorded_by(author):
        # Before the request's row, which is deleted with its pool under this lock.
        window.lock(pool_id)
        request = (
            AllocationRequest.objects.select_for_update(skip_locked=True)
            .filter(pk=request_id, state=RequestState.PENDING)
            .first()
        )
        if request is None:
            return None
        request.attempts = F("attempts") + 1
        request.next_try_at = Now() + RETRY_EVERY
        try:
            result = allocation.allocate(pool_id, demand_from_json(request.demand), author=author)
        except errors.PoolExhausted as error:
            request.last_error = error.message
            request.save()
            return RequestState.PENDING
        except errors.Unavailable:
            raise
        except errors.IpamError as error:  # the request can never succeed; its row keeps the reason
            request.state = RequestState.CANCELLED
            request.last_error = error.message
            request.ended_at = Now()
            request.save()
            return RequestState.CANCELLED
        request.state = RequestState.FULFILLED
        request.ended_at = Now()
        request.last_error = ""
        if isinstance(result, allocation.Allocation):  # always, without an idempotency key
            request.block_ids = [block["id"] for block in result.blocks]
        request.save()
    return RequestState.FULFILLED


def cancel(request_id: int, *, author: events.Author) -> AllocationRequest:
    """Cancel a pending request; a request that has ended is not changed."""
    with events.recorded_by(author):
        AllocationRequest.objects.filter(pk=request_id, state=RequestState.PENDING).update(
            state=RequestState.CANCELLED, ended_at=Now()
        )
    return _get_request(request_id)


def demand_to_json(demand: allocation.BlockDemand) -> dict[str, Any]:
    """Return a demand as it is stored in a request."""
    return {
        "holders": [[holder.kind, holder.id, holder.uid] for holder in demand.holders],
        "families": list(demand.families),
        "count": demand.count,
        "org": demand.org,
        "env": demand.env,
        "cidr": str(demand.cidr) if demand.cidr else None,
        "reuse": demand.reuse,
    }


def demand_from_json(stored: dict[str, Any]) -> allocation.BlockDemand:
    """Return the demand of a stored request."""
    return allocation.BlockDemand(
        holders=tuple(allocation.Holder(*holder) for holder in stored["holders"]),
        families=tuple(stored["families"]),
        count=stored["count"],
        org=stored["org"],
        env=stored["env"],
        cidr=ip_network(stored["cidr"]) if stored["cidr"] else None,
        reuse=stored.get("reuse", False),
    )


# --- cooldowns ------------------------------------------------------------------------------------


def end_cooldowns(*, limit: int = 5000) -> int:
    """Make blocks available whose cooldown has ended, and return their number.

    The rows of withheld blocks are deleted. This is only cleanup: the allocator compares the end of
    a cooldown with the clock by itself.
    """
    with events.recorded_by(events.WORKER), connection.cursor() as cursor:
        cursor.execute(_END_COOLDOWNS, {"limit": limit})
        return int(cursor.fetchone()[0])


_END_COOLDOWNS = statements.read("pools/end_cooldowns")


# Rule `owner-is-named`. The setting IPAM_ALLOW_UNOWNED_ALLOCATIONS relaxes it.
OWNER_REQUIRED = "owner_required"
_OWNER_FIELD = {Category.INSTANCE.value: "instance", Category.IPV4.value: holders.ENVIRONMENT}


def require_owner(pool_id: int, block_demand: holders.BlockDemand) -> None:
    """Raise InvalidInput `owner_required` with every field that is missing or has a wrong value."""
    if settings.IPAM_ALLOW_UNOWNED_ALLOCATIONS:
        return
    try:
        kind = _OWNER_FIELD.get(_category(pool_id))
    except Pool.DoesNotExist:
        return  # the allocator raises NotFound
    if kind is None:
        return
    problems = list(_find_owner_problems(kind, block_demand))
    if problems:
        raise errors.InvalidInput.all(problems)


@lru_cache(maxsize=65536)  # a category never changes, and ids of pools are not reused
def _category(pool_id: int) -> str:
    return Pool.objects.values_list("category", flat=True).get(pk=pool_id)


def _find_owner_problems(kind: str, block_demand: holders.BlockDemand) -> list[errors.FieldProblem]:
    subject = "an instance's address" if kind == "instance" else "a public IPv4 address"
    problems = []
    if not block_demand.org:
        problems.append(
            errors.FieldProblem("org", OWNER_REQUIRED, f"{subject} needs the org that it serves")
        )
    # A holder of the kind env is the environment itself.
    if not block_demand.env and kind != holders.ENVIRONMENT:
        problems.append(
            errors.FieldProblem("env", OWNER_REQUIRED, f"{subject} needs the env that it serves")
        )
    for index, holder in enumerate(block_demand.holders):
        if holder.kind != kind:
            path = f"holders.{index}.kind" if len(block_demand.holders) > 1 else "holder.kind"
            message = f"{subject} needs a holder of the kind {kind}"
            problems.append(
                errors.FieldProblem(
                    path, OWNER_REQUIRED, message, errors.display_value(holder.kind)
                )
            )
    return problems


def hold_in_recovery(
    pool_id: int, demand: BlockDemand, *, author: events.Author
) -> list[BlockAnswer]:
    """Record that the holder uses the block `demand.cidr`, although recovery mode stops allocations.

    A cooldown of another holder does not prevent it. Raises what `allocation.allocate` raises for
    one exact block, and Conflict if the register is not in recovery mode.
    """
    with events.recorded_by(author):
        if recovery_mode.current_recovery() is None:
            raise errors.Conflict(
                "The register is not in recovery mode: allocate the block instead."
            )
        recovery_mode.allow_recording()
        for block in Block.objects.filter(
            pool_id=pool_id, cidr=str(demand.cidr), state=BlockState.COOLING
        ):
            allocation.skip_cooldown(block.pk, author=author)
        result = allocation.allocate(pool_id, demand, author=author)
    return result.blocks if isinstance(result, allocation.Allocation) else []
