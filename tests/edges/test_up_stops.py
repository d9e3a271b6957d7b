"""A stop at any moment of a start is heard, and nobody stays behind."""

import pathlib
import select
import signal
import subprocess
import sys
import time

import pytest

from ipam_site import data_folder
from ipam_site.supervisor import processes
from tests import eventually, running_site

# Amidst the making of a process: where Python runs the handlers of signals, and where the child lives but
# Popen has not returned yet.
_MOMENTS = (
    "after_in_parent=lambda: signal.raise_signal(signal.SIGTERM)",
    "after_in_child=lambda: os.kill(os.getppid(), signal.SIGTERM)",
)
_MAKERS = ("processes.run(['sleep', '600'])", "one.start()")
_PROGRAM = """
import os, pathlib, signal, sys
from ipam_site.supervisor import processes

spec = processes.Spec("sleep", ["sleep", "600"], dict(os.environ), ((signal.SIGTERM, 5.0),))
one = processes.Child(spec, logs=pathlib.Path(sys.argv[1]), say=print)
os.register_at_fork({moment})
processes.listen_for_stop()
try:
    {make}
    processes.pause(0)
    print("not stopped")
except processes.Stopped:
    one.stop()
    print("stopped")
sys.stdout.flush()
sys.stdin.read()
"""


@pytest.mark.parametrize("moment", _MOMENTS)
@pytest.mark.parametrize("make", _MAKERS)
def test_a_stop_while_a_process_is_made_ends_it(
    make: str, moment: str, tmp_path: pathlib.Path
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM.format(moment=moment, make=make), str(tmp_path)],
        cwd=data_folder.PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdout
        try:
            readable = select.select([program.stdout], [], [], 60)[0]
            assert readable, "it does not hear the signal, or waits for the process"
            assert program.stdout.readline() == "stopped\n"
            assert not running_site.alive(running_site.descendants_of(program.pid))
        finally:
            program.kill()


def test_a_command_leaves_nobody_behind() -> None:
    _, pid = processes.run(["sh", "-c", "sleep 600 >&2 & echo $!"])
    eventually.until(lambda: not running_site.alive({int(pid): "sleep"}))


def test_a_child_is_not_started_with_blocked_or_ignored_stop_signals() -> None:
    program = """
from ipam_site.supervisor import processes

processes.listen_for_stop()
print(processes.run(["cat", "/proc/self/status"])[1])
"""
    command = [sys.executable, "-c", program]
    status = subprocess.check_output(command, cwd=data_folder.PROJECT, text=True)
    for line in ("SigBlk:", "SigIgn:"):
        signals = int(status.partition(line)[2].split()[0], 16)
        assert not [stop for stop in (signal.SIGTERM, signal.SIGINT) if signals >> (stop - 1) & 1]


def test_whenever_a_start_is_stopped_nothing_stays_behind_and_the_next_one_succeeds() -> None:
    with running_site.folder() as data:
        first = running_site.Site(data, "--no-demo")
        eventually.until(lambda: first.pids("gunicorn"), 240)
        _stopped(first)
        for seconds in (0.5, 1.0, 1.5, 2.0, 2.5):
            site = running_site.Site(data, "--no-demo")
            time.sleep(seconds)
            _stopped(site)
        site = running_site.Site(data, "--no-demo").wait_until_ready()
        try:
            assert running_site.Browser(site.url).login("admin", first.password)
        finally:
            _stopped(site)


def _stopped(site: running_site.Site) -> None:
    children = site.descendants()
    assert site.end(signal.SIGTERM) < 10
    assert not running_site.alive(children), site.output
