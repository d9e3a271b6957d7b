"""What can go wrong around a running site: each fault says whether it took effect."""

import os
import random
import signal
import time
from dataclasses import dataclass, field

import psycopg

from ipam_site import data_folder
from tests import running_site
from tests.concurrent import crowd as crowds

# The supervisor waits ever longer for a child that dies again within 30 s.
STEADY = 35.0


@dataclass
class Trouble:
    """Faults of one site; the bound methods are given to a crowd."""

    site: running_site.Site
    chance: random.Random
    _restarted: float = field(default=-STEADY, init=False)

    def faults(self) -> list[crowds.Fault]:
        often = [crowds.kill_client, self.kill_web_worker, self.terminate_backends]
        rare = [crowds.pause_client, self.pause_web_worker, self.kill_backend, self.kill_a_helper]
        return [*often, *often, *rare, self.restart_something]

    def kill_web_worker(self, _crowd: crowds.Crowd) -> bool:
        return self._kill(self._web_workers())

    def pause_web_worker(self, _crowd: crowds.Crowd) -> bool:
        pids = self._web_workers()
        if pids:
            crowds.pause(self.chance.choice(pids))
        return bool(pids)

    def terminate_backends(self, _crowd: crowds.Crowd) -> bool:
        try:
            with self.database() as database:
                rows = database.execute(_TERMINATE).fetchall()
        except psycopg.OperationalError:  # it is down already
            return False
        return any(done for (done,) in rows)

    def kill_backend(self, _crowd: crowds.Crowd) -> bool:
        """kill -9: the server throws out everybody and recovers from its log."""
        return self._kill(self.site.pids("postgres: cadastre"))

    def kill_a_helper(self, _crowd: crowds.Crowd) -> bool:
        """Redis, Celery's worker, beat: not a single allocation may notice."""
        name = self.chance.choice(["redis-server", "ipam_site worker", "ipam_site beat"])
        return self._kill(self.site.pids(name))

    def restart_something(self, _crowd: crowds.Crowd) -> bool:
        """The whole database server at once, or the whole web server."""
        if time.monotonic() - self._restarted < STEADY:
            return False
        self._restarted = time.monotonic()
        if self.chance.random() < 0.7:
            result = self.site.pids("bin/postgres ")
            signum = signal.SIGQUIT
        else:
            result = self.site.pids("gunicorn")
            signum = signal.SIGKILL
        return self._kill(result[:1], signum)

    def database(self) -> psycopg.Connection[tuple[object, ...]]:
        url = data_folder.connections(self.site.data)["database_url"]
        return psycopg.connect(url, autocommit=True)

    def _web_workers(self) -> list[int]:
        return self.site.pids("gunicorn")[1:]

    def _kill(self, pids: list[int], signum: int = signal.SIGKILL) -> bool:
        if not pids:
            return False
        pid = self.chance.choice(pids)
        os.kill(pid, signum)
        deadline = time.monotonic() + 2
        while running_site.alive({pid: ""}) and time.monotonic() < deadline:
            time.sleep(0.02)
        return not running_site.alive({pid: ""})


_TERMINATE = """
    SELECT pg_terminate_backend(pid) FROM (
        SELECT pid FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()
          AND application_name = 'cadastre-web'
        ORDER BY random() LIMIT 4) AS chosen
"""
