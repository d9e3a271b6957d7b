"""Reports of tooling about the holders that exist: one numbered feed for each kind in each cluster.

A complete report is an observation (pools/register/leaks/detection.py). A delta only adds or removes
holders and never creates a leak. The sequence number prevents a late or repeated report from undoing a
newer one.
"""

import hashlib
import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from django.db import transaction
from psycopg import sql

from pools.core import block_fields, errors
from pools.models import Cluster, Reference, ReferenceFeed
from pools.platform import database, events
from pools.register.leaks import detection

MOST_HOLDERS = 200_000  # holders in one report
ANSWER_FIELDS = (
    "cluster",
    "holder_kind",
    "sequence",
    "complete",
    "holders",
    "reported_at",
    "complete_at",
    "missed",
    "leaked",
)


class ReferencedHolder(NamedTuple):
    """A referenced holder; without a uid or org, every holder of that name is referenced."""

    id: str
    uid: str = ""
    org: str = ""


@dataclass(frozen=True)
class ReferenceReport:
    """A report about the holders of one kind in a cluster.

    A complete report lists all `holders`; a delta lists the added ones, and those that are `removed`.
    Both are sets: two pods of a VM that is being migrated name the VM twice, and it is one holder.
    `observed_at` is the time when the reporter began to read, if it sent one.
    """

    cluster: Cluster
    kind: str
    sequence: int
    complete: bool
    holders: Collection[ReferencedHolder]
    removed: Collection[ReferencedHolder] = ()
    observed_at: datetime | None = None

    @property
    def fingerprint(self) -> str:
        """Return a digest that does not depend on the order of the holders."""
        content = [
            self.complete,
            sorted(set(self.holders)),
            sorted(set(self.removed)),
            self.observed_at and self.observed_at.isoformat(),
        ]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def ingest_report(report: ReferenceReport, *, author: events.Author) -> dict[str, Any]:
    """Store a report; return the state of the feed and how many blocks a complete report missed.

    The answer has the keys ANSWER_FIELDS. A repeated report gets the same answer and is no further
    observation. Raises StaleSequence, SequenceReused.
    """
    return database.with_retries(lambda: _ingest_report(report, author))


def _ingest_report(report: ReferenceReport, author: events.Author) -> dict[str, Any]:
    with transaction.atomic():
        # A complete report about a million blocks is one statement, longer than the web's own time limit.
        database.rows("SELECT set_config('statement_timeout', '25s', true)", [])
        feed = _lock_feed(report)
        fingerprint = report.fingerprint
        if report.sequence < feed.sequence:
            raise errors.StaleSequence(
                f"The newer report {feed.sequence} of the {feed.holder_kind}s of {report.cluster} was"
                " already received."
            )
        if report.sequence == feed.sequence:
            if fingerprint != feed.fingerprint:
                raise errors.SequenceReused
            return {name: feed.answer[name] for name in ANSWER_FIELDS}  # jsonb keeps no order
        with database.hash_joins_only(many=report.complete):
            _store(feed.pk, report)
        feed.sequence, feed.fingerprint, feed.reporter = report.sequence, fingerprint, author.actor
        feed.reported_at = database.now()
        observation = detection.LeakObservation(0, 0)
        if report.complete:
            feed.complete_at = feed.reported_at
            observation = _record_observation(report, feed.reported_at)
        else:
            detection.clear_referenced(report.cluster.pk, report.kind)
        answer = feed.answer = _answer(feed, report, observation)
        feed.save()
    return answer


def _lock_feed(report: ReferenceReport) -> ReferenceFeed:
    """Return the feed, locked by this transaction; it is created if there was no report yet."""
    values = [report.cluster.pk, report.kind]
    database.rows(_INSERT_FEED, values)
    return ReferenceFeed.objects.select_for_update().get(
        cluster=report.cluster, holder_kind=report.kind
    )


_INSERT_FEED = """
    INSERT INTO pools_referencefeed (cluster_id, holder_kind, sequence, fingerprint, reporter,
        reported_at, answer)
    VALUES (%s, %s, -1, '', '', ipam_now(), '{}') ON CONFLICT DO NOTHING RETURNING id
"""


def _store(feed_id: int, report: ReferenceReport) -> None:
    columns = _columns(report.holders)
    if report.complete:
        database.fetch(_REPLACE, {"feed": feed_id, **columns})
    else:
        database.fetch(_REMOVE, {"feed": feed_id, **_columns(report.removed)})
        database.fetch(_ADD, {"feed": feed_id, **columns})


def _columns(holders: Collection[ReferencedHolder]) -> dict[str, list[str]]:
    distinct = sorted(set(holders))  # the order of the index
    return {
        "ids": [holder.id for holder in distinct],
        "uids": [holder.uid for holder in distinct],
        "orgs": [holder.org for holder in distinct],
    }


_REPORTED_HOLDERS = "unnest(%(ids)s::text[], %(uids)s::text[], %(orgs)s::text[]) AS n(id, uid, org)"
_ADD = f"""
    INSERT INTO pools_reference (feed_id, holder_id, holder_uid, org)
    SELECT %(feed)s, n.id, n.uid, n.org FROM {_REPORTED_HOLDERS}
    ON CONFLICT DO NOTHING RETURNING NULL AS nothing
"""  # noqa: S608  # our own texts
# Rows that stay are not written again.
_REPLACE = f"""
    WITH reported AS MATERIALIZED (SELECT * FROM {_REPORTED_HOLDERS}),
    gone AS (
        DELETE FROM pools_reference r WHERE r.feed_id = %(feed)s AND NOT EXISTS (
            SELECT FROM reported n
            WHERE n.id = r.holder_id AND n.uid = r.holder_uid AND n.org = r.org)),
    added AS (
        INSERT INTO pools_reference (feed_id, holder_id, holder_uid, org)
        SELECT %(feed)s, n.id, n.uid, n.org FROM reported n WHERE NOT EXISTS (
            SELECT FROM pools_reference r WHERE r.feed_id = %(feed)s
              AND n.id = r.holder_id AND n.uid = r.holder_uid AND n.org = r.org))
    SELECT NULL AS nothing LIMIT 0
"""  # noqa: S608  # our own texts
_REMOVE = f"""
    DELETE FROM pools_reference r USING {_REPORTED_HOLDERS}
    WHERE r.feed_id = %(feed)s AND r.holder_id = n.id AND n.uid IN ('', r.holder_uid)
      AND n.org IN ('', r.org)
    RETURNING NULL AS nothing
"""  # noqa: S608  # our own texts


def _record_observation(report: ReferenceReport, now: datetime) -> detection.LeakObservation:
    began = min(report.observed_at, now) if report.observed_at else now
    return detection.record_observation(
        detection.TOOLING,
        sql.SQL("true"),
        cluster_id=report.cluster.pk,
        holders=[report.kind],
        began=began,
    )


def _answer(
    feed: ReferenceFeed, report: ReferenceReport, observation: detection.LeakObservation
) -> dict[str, Any]:
    values = (
        report.cluster.name,
        feed.holder_kind,
        feed.sequence,
        report.complete,
        Reference.objects.filter(feed=feed).count(),
        block_fields.format_time(feed.reported_at),
        block_fields.format_time(feed.complete_at),
        observation.missed,
        observation.leaked,
    )
    return dict(zip(ANSWER_FIELDS, values, strict=True))
