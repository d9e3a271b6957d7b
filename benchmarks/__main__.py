import argparse
import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from ipam_site.supervisor import processes
from pools.platform import heartbeat

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names",
        nargs="*",
        help="hot_pool http batch fill lists admin_lists reconcile fleet entries imports metrics (default: all)",
    )
    parser.add_argument("--seconds", type=float, default=8, help="length of one measurement")
    parser.add_argument("--rows", type=int, default=1_000_000, help="size of the large register")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the site is stopped then, too
    with (
        tempfile.TemporaryDirectory(prefix="cadastre-bench-") as data,
        run_site(Path(data)) as port,
    ):
        os.environ["IPAM_DATA"] = data
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ipam_site.settings")
        os.environ.setdefault("IPAM_HTTPS", "0")
        os.environ["IPAM_ALLOW_LOOPBACK_CLUSTERS"] = "1"  # for ourselves
        import django  # noqa: PLC0415  # the site's servers exist only now

        django.setup()
        from benchmarks import suite  # noqa: PLC0415  # needs Django, as it is set up now

        heartbeat.collect_seldom()
        logging.disable(logging.INFO)  # the results alone are printed

        missed = 0
        for result in suite.run(arguments.names, port, arguments.seconds, arguments.rows):
            missed += result.get("met") is False
            print(json.dumps(result), flush=True)
    return 1 if missed else 0


@contextlib.contextmanager
def run_site(data: Path, tree: Path = ROOT) -> Iterator[int]:
    """A site of a tree without demo data on a free port; yields the port."""
    port = processes.free_port()
    log = (data.parent / f"{data.name}.log").open("w")
    up = subprocess.Popen(
        [sys.executable, "manage.py", "up", f"--port={port}", f"--data={data}", "--no-demo"],
        cwd=tree,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        _wait(up, Path(log.name))
        yield port
    finally:
        up.send_signal(signal.SIGTERM)
        up.wait(30)


def _wait(up: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 90
    while "is ready" not in log.read_text():
        if up.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(log.read_text())
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main())
