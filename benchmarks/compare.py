"""Compare this tree with another one over HTTP, alternately, with wrk as the client.

    git worktree add ../before v0.1.0 && python -m benchmarks.compare ../before

Both run as `manage.py up` on databases of their own. Each result has the rates of both, their ratio (the
median of the rounds) and the latencies; `clients` are keep-alive connections with a token.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.__main__ import ROOT, run_site

Result = dict[str, Any]
_BATCH = 10_000
_UNITS = {"us": 0.001, "ms": 1.0, "s": 1000.0}
_ALLOCATE = """
local thread_count = 0
function setup(thread) thread:set("thread_number", thread_count); thread_count = thread_count + 1 end
function init(args) run = args[1]; request_count = 0 end
function request()
  request_count = request_count + 1
  local body = string.format('{"holder":{"kind":"instance","id":"%s-%d-%d"},"org":"o","env":"e"}',
    run, thread_number, request_count)
  return wrk.format("POST", nil, nil, body)
end
"""
_RELEASE = """
local thread_count = 0
function setup(thread) thread:set("thread_number", thread_count); thread_count = thread_count + 1 end
function init(args)
  blocks = {}
  for line in io.lines(args[1]) do blocks[#blocks + 1] = line end
  position = thread_number * math.floor(#blocks / 2)
end
function request()
  position = position % #blocks + 1
  local id, holder = blocks[position]:match("(%d+) (%S+)")
  return wrk.format("POST", "/api/v1/blocks/" .. id .. "/release/", nil,
    '{"holder":{"kind":"instance","id":"' .. holder .. '"}}')
end
"""


@dataclass
class Site:
    """A running site with one pool, a token, and what `prepare` has made in it."""

    tree: Path
    port: int
    token: str
    pool: int = 0
    block: int = 0
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="cadastre-wrk-")))

    def post(self, path: str, body: Any) -> Any:
        request = urllib.request.Request(  # our own server
            f"http://127.0.0.1:{self.port}/api/v1/{path}",
            data=json.dumps(body).encode(),
            headers={"Authorization": f"Token {self.token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            return json.load(answer)

    def prepare(self, held: int) -> None:
        """Create a pool, in which `held` blocks are held."""
        self.post("clusters/", {"name": "bench"})
        pool = self.post("pools/", {"cluster": "bench", "name": "bench", "category": "instance", "ipv4": {"cidrs": ["10.0.0.0/8"], "mask_size": 32}})  # fmt: skip
        self.pool = pool["id"]
        for start in range(0, max(held, 200), _BATCH):
            self.block = self.hold(f"held-{start}", min(_BATCH, max(held, 200) - start))[0]["id"]

    def hold(self, name: str, count: int) -> list[dict[str, Any]]:
        holders = [{"kind": "instance", "id": f"{name}-{number}"} for number in range(count)]
        blocks: list[dict[str, Any]] = self.post(
            f"pools/{self.pool}/allocations/", {"holders": holders, "org": "o", "env": "e"}
        )["blocks"]
        return blocks

    def write(self, name: str, text: str) -> str:
        path = self.folder / name
        path.write_text(text)
        return str(path)

    def measure(self, name: str, clients: int, seconds: int) -> Result:
        """Have wrk send requests of one kind; RuntimeError if one of them fails."""
        paths = {
            "allocate": f"pools/{self.pool}/allocations/",
            "release": "blocks/",
            "get_block": f"blocks/{self.block}/",
            "list_100": "blocks/?limit=100",
        }
        command = ["wrk", "-t2", f"-c{clients}", f"-d{seconds}s", "--latency",
                   "-H", f"Authorization: Token {self.token}", "-H", "Content-Type: application/json"]  # fmt: skip
        arguments: list[str] = []
        run = os.urandom(4).hex()
        if name == "allocate":
            command += ["-s", self.write("allocate.lua", _ALLOCATE)]
            arguments = ["--", run]
        elif name == "release":
            blocks = self.hold(run, _BATCH)
            lines = "".join(f"{block['id']} {block['holder']['id']}\n" for block in blocks)
            command += ["-s", self.write("release.lua", _RELEASE)]
            arguments = ["--", self.write("blocks.txt", lines)]
        url = f"http://127.0.0.1:{self.port}/api/v1/{paths[name]}"
        output = subprocess.run(
            [*command, url, *arguments], capture_output=True, text=True, check=True
        ).stdout
        if "Non-2xx" in output or "Socket errors" in output:
            raise RuntimeError(f"{self.tree}: {name}\n{output}")
        return {
            "rate": float(re.findall(r"Requests/sec:\s+([\d.]+)", output)[0]),
            "p50": _milliseconds(output, "50%"),
            "p99": _milliseconds(output, "99%"),
        }


def _milliseconds(output: str, quantile: str) -> float:
    ((number, unit),) = re.findall(rf"{quantile}\s+([\d.]+)(us|ms|s)", output)
    return float(number) * _UNITS[unit]


def compare(
    sites: list[Site], names: list[str], clients: list[int], seconds: int, rounds: int
) -> Iterator[Result]:
    """Yield a result for each kind of request and number of clients; the sites take turns."""
    for name in names:
        for client_count in clients:
            pairs = [
                [site.measure(name, client_count, seconds) for site in sites] for _ in range(rounds)
            ]
            yield {
                "name": f"{name}_{client_count}",
                "before": round(statistics.median(pair[0]["rate"] for pair in pairs), 1),
                "now": round(statistics.median(pair[-1]["rate"] for pair in pairs), 1),
                "ratio": round(
                    statistics.median(pair[-1]["rate"] / pair[0]["rate"] for pair in pairs), 2
                ),
                "p50_ms": round(statistics.median(pair[-1]["p50"] for pair in pairs), 2),
                "p99_ms": round(statistics.median(pair[-1]["p99"] for pair in pairs), 2),
            }


@contextmanager
def _start(tree: Path, held: int) -> Iterator[Site]:
    with (
        tempfile.TemporaryDirectory(prefix="cadastre-bench-") as data,
        run_site(Path(data), tree) as port,
    ):
        token = subprocess.run(
            [sys.executable, "manage.py", "token", "admin"],
            cwd=tree, env={**os.environ, "IPAM_DATA": data}, capture_output=True, text=True, check=True,
        ).stdout.strip()  # fmt: skip
        site = Site(tree, port, token)
        try:
            site.prepare(held)
            yield site
        finally:
            shutil.rmtree(site.folder)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__)
    parser.add_argument("before", type=Path, help="the other tree")
    parser.add_argument(
        "names", nargs="*", default=["allocate", "release", "get_block", "list_100"]
    )
    parser.add_argument("--clients", type=int, nargs="+", default=[8, 32])
    parser.add_argument("--seconds", type=int, default=4, help="length of one measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--held", type=int, default=0, help="blocks that are held at the beginning")
    arguments = parser.parse_args()
    if not shutil.which("wrk"):
        raise SystemExit("wrk is missing (Debian: apt-get install wrk)")
    with ExitStack() as stack:
        trees = (arguments.before.resolve(), ROOT)
        sites = [stack.enter_context(_start(tree, arguments.held)) for tree in trees]
        for result in compare(
            sites, arguments.names, arguments.clients, arguments.seconds, arguments.rounds
        ):
            print(json.dumps(result), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
