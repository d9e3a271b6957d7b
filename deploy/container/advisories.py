"""`make check`: is a pinned package known to be flawed? Asks OSV (https://osv.dev) about the lock files.

Status 1 for a package with an advisory of which a fixed version exists, and which has been public for
two weeks: so that a check that is green today is not red tomorrow before anybody can act. Younger
ones, and those without a fix, are printed. `advisories-ignored.txt` names those that do not concern us:
each with a reason, and the day after which it counts again.

Without a network it says in one line that it could not look, and costs some seconds. ADVISORIES_URL names
another server with OSV's API (a mirror, or "" for none).
"""

from __future__ import annotations

import concurrent.futures
import datetime
import json
import os
import pathlib
import re
import socket
import sys
import urllib.request
from dataclasses import dataclass
from typing import Any

HERE = pathlib.Path(__file__).parent
LOCKS = (*sorted(HERE.glob("*.lock")), HERE.parents[1] / "requirements-dev.lock")
IGNORED = HERE / "advisories-ignored.txt"
SECONDS = 5  # for each answer
YOUNG = datetime.timedelta(days=14)
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s\\;]+)", re.MULTILINE)
_RULE = re.compile(r"(\S+) +until +(\d{4}-\d{2}-\d{2}) +(\S.*)")


class CannotLookError(Exception):
    """The advisories are not to be had."""


@dataclass(frozen=True)
class Finding:
    """An advisory about a pinned package; `fixed` are versions without the flaw."""

    package: str
    version: str
    advisory: str
    names: frozenset[str]  # the advisory's id and its aliases
    published: datetime.date
    fixed: tuple[str, ...]
    summary: str

    def __str__(self) -> str:
        fix = f"fixed in {', '.join(self.fixed)}" if self.fixed else "no fixed version"
        return f"{self.package} {self.version}: {self.advisory} of {self.published}, {fix}. {self.summary}"


def ask(url: str, body: object | None = None) -> Any:
    """Raises CannotLookError."""
    data = None if body is None else json.dumps(body).encode()
    if not url.startswith(("https://", "http://")):
        raise CannotLookError("ADVISORIES_URL names no server")
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})  # noqa: S310  # see above
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:  # noqa: S310
            return json.load(answer)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise CannotLookError(f"{url}: {reason}") from None


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(locks: tuple[pathlib.Path, ...]) -> list[tuple[str, str]]:
    """(name, version) of each package that a lock pins."""
    found = {pin for lock in locks for pin in _PIN.findall(lock.read_text())}
    return sorted({(normalized(name), version) for name, version in found})


def look(server: str, packages: list[tuple[str, str]]) -> list[Finding]:
    """What is known of the packages. Raises CannotLookError."""
    queries = [
        {"package": {"name": name, "ecosystem": "PyPI"}, "version": version}
        for name, version in packages
    ]
    results = ask(f"{server}/v1/querybatch", {"queries": queries})["results"]
    if len(results) != len(packages):
        raise CannotLookError(f"{server}: answers to other questions")
    affected = [
        (package, vulnerability["id"])
        for package, result in zip(packages, results, strict=True)
        for vulnerability in result.get("vulns", [])
    ]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        advisories = pool.map(lambda one: ask(f"{server}/v1/vulns/{one[1]}"), affected)
        return [
            finding(package, advisory)
            for (package, _), advisory in zip(affected, advisories, strict=True)
            if "withdrawn" not in advisory
        ]


def finding(package: tuple[str, str], advisory: dict[str, Any]) -> Finding:
    name, version = package
    events = [
        event
        for affected in advisory.get("affected", [])
        if normalized(affected.get("package", {}).get("name", "")) == name
        for span in affected.get("ranges", [])
        if span.get("type") == "ECOSYSTEM"
        for event in span.get("events", [])
    ]
    return Finding(
        package=name,
        version=version,
        advisory=advisory["id"],
        names=frozenset([advisory["id"], *advisory.get("aliases", [])]),
        published=datetime.date.fromisoformat(advisory["published"][:10]),
        fixed=tuple(event["fixed"] for event in events if "fixed" in event),
        summary=" ".join(advisory.get("summary", "").split())[:200],
    )


def ignored(text: str, today: datetime.date) -> set[str]:
    """Advisories that do not count today. Raises ValueError for a line without a day or a reason."""
    found = set()
    for line in filter(None, (line.partition("#")[0].strip() for line in text.splitlines())):
        rule = _RULE.fullmatch(line)
        if rule is None:
            raise ValueError(
                f"{IGNORED.name}: write ADVISORY until YYYY-MM-DD REASON, not {line!r}"
            )
        if today <= datetime.date.fromisoformat(rule[2]):
            found.add(rule[1])
    return found


def report(findings: list[Finding], leave_out: set[str], today: datetime.date) -> int:
    """Print what was found; the status."""
    status = 0
    for one in findings:
        if one.names & leave_out:
            continue
        counts = bool(one.fixed) and today - one.published > YOUNG
        status = max(status, counts)
        sys.stdout.write(f"{'FLAW' if counts else 'note'}: {one}\n")
    return status


def main() -> int:
    server = os.environ.get("ADVISORIES_URL", "https://api.osv.dev").rstrip("/")
    today = datetime.datetime.now(datetime.UTC).date()  # noqa: TID251  # of this machine
    leave_out = ignored(IGNORED.read_text(), today)
    packages = pins(LOCKS)
    try:
        findings = look(server, packages)
    except (CannotLookError, KeyError, TypeError) as error:
        sys.stdout.write(f"Advisories: could not look ({error})\n")
        return 0
    status = report(findings, leave_out, today)
    if not status:
        sys.stdout.write(f"Advisories: {len(packages)} packages, no flaw that has been fixed.\n")
    return status


if __name__ == "__main__":
    socket.setdefaulttimeout(SECONDS)
    sys.exit(main())
