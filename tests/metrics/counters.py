"""Processes that count, each started anew like those of a site."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

from django.conf import settings

_ROOT = Path(__file__).resolve().parents[2]


def start(body: str, *, every: int = 1, database: str = "") -> subprocess.Popen[str]:
    """A Python process with Django and `measures`; it reads lines from its standard input."""
    program = "import os, sys, time, django; django.setup()\nfrom pools.platform import process_metrics as measures\n"
    return subprocess.Popen(
        [sys.executable, "-c", program + textwrap.dedent(body)],
        cwd=_ROOT,
        env={
            **os.environ,
            "DATABASE_URL": database or url(),
            "IPAM_MEASURE_SECONDS": str(every),
            "DJANGO_SETTINGS_MODULE": "ipam_site.settings",
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def finished(process: subprocess.Popen[str]) -> list[str]:
    """Let it end, and what it printed as `said …`, beside its log."""
    out, _ = process.communicate("", timeout=120)
    assert process.returncode == 0
    return [line.removeprefix("said ") for line in out.splitlines() if line.startswith("said ")]


def url() -> str:
    """The test database."""
    entry = settings.DATABASES["default"]
    place = f"{entry['HOST'] or 'localhost'}:{entry['PORT'] or 5432}"
    return f"postgresql://{entry['USER']}:{entry['PASSWORD']}@{place}/{entry['NAME']}"
