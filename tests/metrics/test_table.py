"""Every metric is named by the rules, described in docs/reference/metrics.md, and counted under its own name."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ipam_site.http import metrics
from pools.platform import process_metrics
from pools.platform.metrics import families
from pools.platform.metrics.families import Kind
from tests import factories
from tests.metrics import scrapes

_ROOT = Path(__file__).resolve().parents[2]
_DOCS = _ROOT / "docs" / "reference" / "metrics.md"
_COUNTED = re.compile(r"process_metrics\.(count|observe|mark)\(\s*\"([^\"]+)\"")


def test_no_label_tells_who_holds_what() -> None:
    used = {label for family in families.ALL for label in family.labels}
    assert used == {
        "cluster", "pool", "category", "family", "state", "result", "reason", "holder_kind",
        "kind", "severity", "webhook", "verb", "code", "version", "revision", "python",
        "segment", "digest", "level",
    }  # fmt: skip


def test_what_is_counted_anywhere_is_in_the_table() -> None:
    result = {
        (verb, name)
        for folder in ("pools", "claims", "ipam_site")
        for path in (_ROOT / folder).rglob("*.py")
        for verb, name in _COUNTED.findall(path.read_text())
    }
    verbs = {
        Kind.COUNTER: {"count"},
        Kind.GAUGE: {"mark"},
        Kind.HISTOGRAM: {"observe"},
        Kind.SUMMARY: {"observe"},
    }
    for verb, name in result:
        family = families.BY_NAME[name]
        assert family.is_measured, name
        assert verb in verbs[family.kind], name
    # Releases are counted from events only.
    counted = {name for _, name in result} | {"ipam_releases_total"}
    assert counted == {family.name for family in families.ALL if family.is_measured}


def test_histograms_are_those_that_have_buckets() -> None:
    histograms = {family.name for family in families.ALL if family.kind is Kind.HISTOGRAM}
    assert histograms == set(process_metrics.BUCKETS)
    for ends in process_metrics.BUCKETS.values():
        assert list(ends) == sorted(set(ends))


def test_the_table_of_the_docs_is_that_of_the_code() -> None:
    rows = {}
    for line in _DOCS.read_text().splitlines():
        if line.startswith("| `ipam_"):
            name, kind, labels, meaning, *_ = (cell.strip() for cell in line.split("|")[1:-1])
            rows[name.strip("`")] = (kind, labels, meaning)
    expected = {
        family.name: (
            family.kind.value,
            ", ".join(f"`{label}`" for label in family.labels) or "none",
            family.help,
        )
        for family in families.ALL
    }
    assert rows == expected
    assert list(rows) == list(expected), "in the order of the code"


def test_every_metric_has_its_help_and_type_in_a_scrape() -> None:
    result = scrapes.families()
    kinds = {Kind.INFO: "gauge"}
    for family in families.ALL:
        # The old format calls an info a gauge of its whole name.
        name = family.name if family.kind is Kind.INFO else family.stem
        metric = result.pop(name)
        assert metric.documentation == family.help
        assert metric.type == kinds.get(family.kind, family.kind.value)
    assert result == {}


def test_promtool_finds_nothing_to_complain_of() -> None:
    if not (promtool := shutil.which("promtool")):
        pytest.skip("promtool is not installed: apt-get install prometheus")
    pool = factories.pool("10.0.0.0/24", "2001:db8::/120")
    factories.ask(pool)
    checked = subprocess.run(
        [promtool, "check", "metrics"], input=metrics.render(), capture_output=True, check=False
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")
