"""A worker in a process of its own, on the test's database: `python -m tests.claims.imports.workers ID`."""

import os
import subprocess
import sys

from tests.reconcile import processes


def start(import_id: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.claims.imports.workers", str(import_id)],
        cwd=processes.ROOT,
        env=processes.environment(),
    )


if __name__ == "__main__":
    os.environ["DJANGO_SETTINGS_MODULE"] = "ipam_site.settings"
    import django

    django.setup()
    from pools.platform.imports import worker

    worker.process_import(int(sys.argv[1]))
