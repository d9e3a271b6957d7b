"""Writing what is wanted and is not so, then keeping what people should know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pools.clusters.client.api_client import Manifest
from pools.clusters.reconcile import comparison, differences, ingest, storage, writes
from pools.clusters.reconcile.handler import Handler, Pass, Place, Write
from pools.clusters.reconcile.sync_runs import LONGEST_PLAN, Counts
from pools.clusters.reconcile.writes import Result
from pools.core.kubernetes.differences import Difference
from pools.models import ObservedObject
from pools.platform.outbound import faults

# The same trouble with so many objects in a row is the cluster's, not theirs.
IN_A_ROW = 10
_OF_THE_CLUSTER = (faults.Forbidden, faults.ServerFault)
_FLUSH = 100  # objects that were written, until they are taken in


def settle(pass_: Pass, handler: Handler, one: Counts) -> None:
    """Write what the handler wants; keep its differences and findings. Raises what ends the kind."""
    _settle(pass_, handler, one)
    if one.written and handler.prompt:
        more = Counts()  # what fails again is counted once
        _settle(pass_, handler, more)
        one.written += more.written


def _settle(pass_: Pass, handler: Handler, one: Counts) -> None:
    # All at once: a transaction that a handler has open meanwhile does not wait for the cluster.
    wanted = list(handler.desired(pass_))
    results: list[Result] = []
    fault: faults.ClusterFault | None = None
    try:
        _send_all(pass_, handler, wanted, results, one)
    except faults.ClusterFault as error:
        fault = error
    found = [] if pass_.dry_run or fault else list(handler.findings(pass_))
    if not pass_.dry_run:
        whole = fault is None and not pass_.told
        covered = None if whole else {result.write.place for result in results} | pass_.touched
        with pass_.holding():
            differences.keep_drift(pass_.cluster.pk, handler.kind, _drift(results), covered)
            if not fault:
                differences.keep_findings(pass_.cluster.pk, handler.kind, found)
    if fault:
        raise fault


def _send_all(
    pass_: Pass, handler: Handler, wanted: Sequence[Write], results: list[Result], one: Counts
) -> None:
    known = _known(pass_, handler, wanted)
    stored: list[Manifest] = []
    trouble = 0
    try:
        for write in wanted:
            ours = write.resource == pass_.served.get(handler.kind)
            fresh = ours and (not pass_.told or write.place in known)
            result = writes.send(
                pass_, write, known.get(write.place) if fresh else None, fresh=fresh
            )
            results.append(result)
            _count(one, result, dry_run=pass_.dry_run)
            if result.stored is not None and ours:
                known[write.place] = result.stored
                stored.append(result.stored)
            if len(stored) == _FLUSH:
                _take_in(pass_, handler, stored)
            trouble = trouble + 1 if isinstance(result.fault, _OF_THE_CLUSTER) else 0
            if trouble == IN_A_ROW and isinstance(result.fault, faults.ClusterFault):
                raise result.fault
    finally:
        _take_in(pass_, handler, stored)


def _known(pass_: Pass, handler: Handler, wanted: Sequence[Write]) -> dict[Place, Manifest]:
    """The objects as they were seen last: nothing is asked of the cluster for those that are well."""
    if not wanted:
        return {}
    if not pass_.told:
        return {comparison.place(each): each for each in pass_.listed.get(handler.kind, ())}
    names = {write.name for write in wanted}
    rows = ObservedObject.objects.filter(
        cluster=pass_.cluster, kind=handler.kind, name__in=names
    ).exclude(problem_code=storage.UNSTORABLE)
    return {
        (namespace, name): manifest
        for namespace, name, manifest in rows.values_list("namespace", "name", "manifest")
    }


def _take_in(pass_: Pass, handler: Handler, stored: list[Manifest]) -> None:
    """What was written is what was seen: the next pass need not take it for news."""
    last = {manifest["metadata"]["uid"]: manifest for manifest in stored}
    ingest.absorb(pass_, handler, pass_.served[handler.kind], list(last.values()))
    stored.clear()


def _count(one: Counts, result: Result, *, dry_run: bool) -> None:
    one.written += result.stored is not None
    one.failed += result.fault is not None
    if not (dry_run and result.found and result.write.send):
        return
    one.would += 1
    if len(one.plan) < LONGEST_PLAN:
        one.plan.append(
            {
                "namespace": result.write.namespace,
                "name": result.write.name,
                "fields": [_field(each) for each in result.found],
            }
        )


def _field(each: Difference) -> dict[str, Any]:
    return {"path": each.path, "desired": each.desired, "observed": each.observed}


def _drift(results: Sequence[Result]) -> list[differences.Drifting]:
    return [
        differences.Drifting(result.write.place, each, *_why(result, each))
        for result in results
        for each in result.found
    ]


def _why(result: Result, each: Difference) -> tuple[str, str]:
    """Why a field was not written, and the code of it; of one that another manager owns that it is."""
    fault = result.fault
    if fault is None:
        return "", ""
    names = writes.foreign(each, result.write.manager)
    if isinstance(fault, faults.FieldConflict) and names:
        return f"owned by {', '.join(names)}", fault.code
    return fault.message or fault.code, fault.code
