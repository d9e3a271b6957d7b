"""`pytest --slowest-files 20`: what each file of a run costs, for the choice of what `make test` leaves out.

The seconds are those of the tests of a file with their fixtures, once by the clock and once of the processor: of the
test's process and of the processes that it started and waited for, without the database server and sites that run on.
"""

import collections
import resource
from collections.abc import Iterator
from typing import Any

import pytest

_PROCESSOR = "processor seconds"


def add_option(parser: pytest.Parser) -> None:
    parser.addoption(
        "--slowest-files", type=int, default=0, metavar="N", help="print the N slowest test files"
    )


class Stopwatch:
    """In each process: a report says how much processor time its phase took."""

    _before = 0.0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        self._before = _processor_seconds()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self) -> Iterator[None]:
        outcome: Any = yield
        now = _processor_seconds()
        report = outcome.get_result()
        report.user_properties = [*report.user_properties, (_PROCESSOR, now - self._before)]
        self._before = now


def _processor_seconds() -> float:
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def write_summary(terminal: Any, count: int) -> None:
    clock: collections.Counter[str] = collections.Counter()
    processor: collections.Counter[str] = collections.Counter()
    for reports in terminal.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                file = report.nodeid.partition("::")[0]
                clock[file] += report.duration
                processor[file] += dict(report.user_properties).get(_PROCESSOR, 0)
    terminal.section(f"{count} slowest files: seconds, and those of the processor")
    for file, seconds in clock.most_common(count):
        terminal.write_line(f"{seconds:8.1f} {processor[file]:8.1f}  {file}")
    terminal.write_line(f"{clock.total():8.1f} {processor.total():8.1f}  all files")
