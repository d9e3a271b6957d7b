"""Clients over HTTP against a real `manage.py up` while its parts are killed: is every promise kept?

    python -m tests.concurrent.chaos --seconds 240

The history is judged by tests.concurrent.checker, the database's own events by the audits below.
Of a run that failed the journals are kept.
"""

import argparse
import http.client
import json
import pathlib
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import psycopg

from tests import eventually, running_site
from tests.concurrent import checker, crowd as crowds, doors, trouble as troubles

# name, family, CIDR, cooldown in seconds: small, so that addresses are used again and again.
POOLS = (("v4", 4, "10.0.0.0/26", 1), ("v6", 6, "fd00::/122", 2), ("wide", 4, "10.1.0.0/25", 1))
TOLERANCE = 0.8  # seconds; see AUDITS
QUIET = 2.0  # seconds before the first fault
BOUNDS = {4: 32, 6: 128}


@dataclass(frozen=True)
class Report:
    """What a run found, and what it proves."""

    violations: tuple[checker.Violation, ...]
    audit: dict[str, list[Any]]
    numbers: checker.Numbers
    rate: float  # operations per second before the first fault
    faults: dict[str, int]
    deadlocks: int

    def too_weak(self, *, rate: float, faults: int, reuse: float = 0.2) -> list[str]:
        """Why the run proves too little; empty when it does not."""
        expected = {"rate": (self.rate, rate), "faults": (sum(self.faults.values()), faults),
                  "reuse": (self.numbers.reuse_share, reuse)}  # fmt: skip
        return [
            f"{name} {is_:.1f} < {least}" for name, (is_, least) in expected.items() if is_ < least
        ]


def run(folder: pathlib.Path, *, seconds: float, clients: int, seed: int) -> Report:
    """Start a site, trouble it for so long, let it heal, and judge."""
    with running_site.folder() as data:
        site = running_site.Site(data, "--no-demo")
        try:
            site.wait_until_ready()
            trouble = troubles.Trouble(site, random.Random(seed))  # noqa: S311  # no secret
            return judge(
                site, trouble.faults(), trouble.database, folder,
                seconds=seconds, clients=clients, seed=seed,
            )  # fmt: skip
        except BaseException:
            shutil.copytree(data / "logs", folder / "logs", dirs_exist_ok=True)
            raise
        finally:
            site.end(seconds=120)


def judge(
    site: running_site.Site,
    faults: Sequence[crowds.Fault],
    connect: Callable[[], psycopg.Connection[Any]],
    folder: pathlib.Path,
    *,
    seconds: float,
    clients: int,
    seed: int,
    slower: int = 1,
) -> Report:
    """Let clients allocate and release at a site while it is troubled, wait until it is ready, and judge.

    Where transactions take long, cooldowns and the tolerance of the audits are so many times as long.
    """
    token = site.command("token", "admin").strip()
    crowd = crowds.Crowd(
        folder=folder,
        cooldowns={name: float(cooldown * slower) for name, _, _, cooldown in POOLS},
        door=(doors.Http, (site.port, token, _make_pools(site, token, slower))),
        clients=clients,
        room=240 // clients,  # together nearly all there is
        seconds=seconds,
        quiet=QUIET,
        faults=faults,
        seed=seed,
    )
    crowd.run()
    eventually.until(lambda: running_site.status(f"{site.url}/readyz")[0] == 200)
    with connect() as database:
        held = [checker.Held(*row) for row in database.execute(_HELD).fetchall()]
        tolerance = f"{TOLERANCE * slower} s"
        audit = {
            name: database.execute(query.replace("{tolerance}", tolerance)).fetchall()
            for name, query in AUDITS.items()
        }
        ((deadlocks,),) = database.execute(_DEADLOCKS).fetchall()
    history = crowd.history()
    early = sum(0 < (op.ended or 0) - crowd.started < QUIET for op in history)
    return Report(
        violations=tuple(crowd.check(held)),
        audit={name: rows for name, rows in audit.items() if rows},
        numbers=checker.numbers(history),
        rate=early / QUIET,
        faults=dict(crowd.took_effect),
        deadlocks=deadlocks,
    )


def _make_pools(site: running_site.Site, token: str, slower: int) -> dict[str, int]:
    _post(site, token, "/api/v1/clusters/", {"name": "chaos"})
    created = {}
    for name, family, cidr, cooldown in POOLS:
        body = {"cluster": "chaos", "name": name, "category": "vm", "cooldown_seconds": cooldown * slower,
                f"ipv{family}": {"mask_size": BOUNDS[family], "cidrs": [{"cidr": cidr}]}}  # fmt: skip
        created[name] = _post(site, token, "/api/v1/pools/", body)["id"]
    return created


def _post(site: running_site.Site, token: str, path: str, body: Any) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=10)
    headers = {"Authorization": f"Token {token}", "Content-Type": "application/json"}
    connection.request("POST", path, json.dumps(body), headers)
    answer = connection.getresponse()
    reply = json.loads(answer.read())
    connection.close()
    if answer.status != 201:
        raise AssertionError(f"{path}: {answer.status} {reply}")
    return reply


_HELD = """
    SELECT b.holder_id, p.name, host(b.cidr) FROM pools_block b
    JOIN pools_pool p ON p.id = b.pool_id WHERE b.state = 'held'
"""
_DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
# By the database's own record; each must be empty. An event is dated by the beginning of its
# transaction, which may have waited for a lock or been paused: hence the tolerance, below a cooldown.
AUDITS = {
    "held by two at a time, or given away while cooling": """
        SELECT cidr, holder_id, former, allocated_at, free_from FROM (
            SELECT cidr, pgh_label, holder_id, allocated_at,
                lag(pgh_label) OVER w AS before, lag(holder_id) OVER w AS former,
                lag(available_from) OVER w AS free_from
            FROM pools_blockevent WINDOW w AS (PARTITION BY space_id, cidr ORDER BY pgh_id)) AS e
        WHERE pgh_label = 'allocated' AND (
            before = 'allocated' OR former <> holder_id AND allocated_at < free_from - interval '{tolerance}')""",
    "one allocation for each key": """
        SELECT holder_id, count(*) FROM pools_blockevent WHERE pgh_label = 'allocated'
        GROUP BY holder_id HAVING count(*) > 1""",
    "rows and events agree": """
        SELECT b.cidr, b.state, e.state FROM pools_block b LEFT JOIN LATERAL (
            SELECT state, holder_id FROM pools_blockevent v WHERE v.pgh_obj_id = b.id
            ORDER BY pgh_id DESC LIMIT 1) e ON true
        WHERE b.holder_id <> '' AND (e.state IS DISTINCT FROM b.state
                                     OR e.holder_id IS DISTINCT FROM b.holder_id)""",
    "rows and free spans make up the pool": """
        SELECT p.name, r.n, f.n FROM pools_pool p,
          LATERAL (SELECT count(*) AS n FROM pools_block WHERE pool_id = p.id) r,
          LATERAL (SELECT COALESCE(sum(s.last - s.first + 1), 0) AS n FROM pools_freespan s
                   JOIN pools_poolcidr c ON c.id = s.pool_cidr_id WHERE c.pool_id = p.id) f
        WHERE r.n + f.n <> CASE p.name WHEN 'v4' THEN 62 WHEN 'v6' THEN 63 ELSE 126 END""",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=240)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="cadastre-chaos-"))
    report = run(folder, seconds=options.seconds, clients=options.clients, seed=options.seed)
    weak = report.too_weak(rate=100, faults=int(options.seconds / 4))
    kinds = Counter(violation.kind for violation in report.violations)
    summary = asdict(report) | {"seed": options.seed, "violations": kinds, "too_weak": weak}
    print(json.dumps(summary, default=str))  # noqa: T201
    for violation in report.violations[:20]:
        print(f"{violation.kind}: {violation.text}")  # noqa: T201
    if report.violations or report.audit or report.deadlocks or weak:
        print(f"the journals are in {folder}")  # noqa: T201
        return 1
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
