"""The alerts: promtool runs their unit tests, and each has what its reader needs."""

import contextlib
import io
import re
import shlex
import shutil
import subprocess
from urllib import parse

import pytest
import yaml
from django.core.management import CommandError, get_commands, load_command_class
from django.urls import resolve

from pools.clusters import connections
from pools.clusters.reconcile import leases
from pools.platform.conditions import registry
from tests.prometheus import files

PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(
    PROMTOOL is None, reason="no promtool (Debian's package prometheus)"
)
TESTS = sorted((files.PROMETHEUS / "tests").glob("*.yaml"))
ALERTS = sorted({rule["alert"] for rule in files.rules()})
RUNBOOKS = sorted({*ALERTS, *registry.runbooks()})
HEADINGS = ["Meaning", "Impact", "Diagnosis", "Mitigation"]
ROOT = "https://cadastre.example.org/docs/runbooks/"


def promtool(*arguments: str) -> str:
    assert PROMTOOL is not None
    done = subprocess.run([PROMTOOL, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_promtool
def test_the_rules_are_rules() -> None:
    assert "SUCCESS" in promtool("check", "rules", str(files.RULES))


@pytest.mark.sample(14)
@needs_promtool
@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.stem)
def test_an_alert_fires_when_it_shall_and_not_otherwise(path: object) -> None:
    promtool("test", "rules", str(path))


@pytest.mark.parametrize("alert", ALERTS)
def test_each_alert_is_tested_firing_and_not_firing(alert: str) -> None:
    document = yaml.safe_load((files.PROMETHEUS / "tests" / f"{alert}.yaml").read_text())
    checks = [check for test in document["tests"] for check in test["alert_rule_test"]]
    assert {check["alertname"] for check in checks} == {alert}
    fired = {
        fires["exp_labels"]["severity"] for check in checks for fires in check.get("exp_alerts", [])
    }
    assert fired == {r["labels"]["severity"] for r in files.rules() if r["alert"] == alert}
    quiet = [
        test
        for test in document["tests"]
        if not any("exp_alerts" in c for c in test["alert_rule_test"])
    ]
    assert quiet


def test_each_test_is_of_an_alert() -> None:
    assert [path.stem for path in TESTS] == ALERTS


def test_what_the_issue_asks_for_is_there() -> None:
    assert {
        "IpamPoolNearlyFull", "IpamAllocationFailing", "IpamClusterStale", "IpamDuplicateAddress",
        "IpamLeakGrowing", "IpamOutboxStuck", "IpamSchedulerStopped", "IpamCooldownExhaustion",
        "IpamAuditChainBroken", "IpamCheckViolations", "IpamDbClockSkew", "IpamRecoveryActive",
        "IpamMetricsAbsent",
    } <= set(ALERTS)  # fmt: skip


@pytest.mark.parametrize("rule", files.rules(), ids=lambda rule: rule["alert"])
def test_an_alert_says_what_and_where(rule: dict[str, dict[str, str]]) -> None:
    notes = rule["annotations"]
    assert set(notes) == {"summary", "description", "runbook_url"}
    assert notes["runbook_url"] == f"{ROOT}{rule['alert']}.md"
    assert rule["labels"]["severity"] in {"page", "warning"}
    expression = str(rule["expr"])
    labels = set().union(
        *(files.exported()[name] for name in files.metrics(expression)), files.OF_TARGETS
    )
    stored = re.search(r"\bby \(([^)]*)\)", expression)
    remaining = set(re.findall(r"\w+", stored[1])) if stored else set()
    for text in notes.values():
        mentioned = set(re.findall(r"\$labels\.(\w+)", text))
        assert mentioned <= labels & remaining, text


def test_a_stale_cluster_is_one_whose_pass_is_overdue() -> None:
    (rule,) = (rule for rule in files.rules() if rule["alert"] == "IpamClusterStale")
    assert 'ipam_alert_threshold{code="cluster_stale"' in rule["expr"]
    assert connections.stale_after().total_seconds() == leases.FULL_EVERY + 300


# --- runbooks -------------------------------------------------------------------------------------


def test_each_runbook_is_of_an_alert_or_a_condition_and_listed() -> None:
    assert sorted(path.stem for path in files.RUNBOOKS.glob("*.md")) == RUNBOOKS
    listed = re.findall(
        r"\(runbooks/(\w+)\.md\)", (files.RUNBOOKS.parent / "README.md").read_text()
    )
    assert sorted(listed) == RUNBOOKS


@pytest.mark.parametrize("code", registry.codes())
def test_each_condition_has_a_runbook(code: str) -> None:
    text = (files.RUNBOOKS / f"{registry.runbook(code)}.md").read_text()
    if registry.runbook(code) not in ALERTS:
        assert f"`{code}`" in text
    reference = (files.RUNBOOKS.parent / "reference" / "alerts.md").read_text()
    (row,) = re.findall(rf"^\| `{code}` .*$", reference, re.MULTILINE)
    assert f"(../runbooks/{registry.runbook(code)}.md)" in row


@pytest.mark.parametrize("alert", RUNBOOKS)
def test_a_runbook_has_its_parts(alert: str) -> None:
    text = (files.RUNBOOKS / f"{alert}.md").read_text()
    assert text.startswith(f"# {alert}\n")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == HEADINGS
    severities = {r["labels"]["severity"] for r in files.rules() if r["alert"] == alert}
    if not severities:  # of a condition only
        reference = (files.RUNBOOKS.parent / "reference" / "alerts.md").read_text()
        levels = re.findall(rf"^\| `\w+` \| ([a-z, ]+) \|.*/{alert}\.md", reference, re.MULTILINE)
        severities = {level for row in levels for level in row.split(", ")}
    assert set(re.findall(r"info|warning|error|page", text.splitlines()[2])) == severities
    for link in re.findall(r"\]\(([^)]+\.md)\)", text):
        assert (files.RUNBOOKS / link).is_file(), link
    for item in re.findall(r"docs/([a-z/-]+\.md)", text):
        assert (files.RUNBOOKS.parent / item).is_file(), item


@pytest.mark.parametrize("alert", RUNBOOKS)
def test_the_commands_of_a_runbook_exist(alert: str) -> None:
    text = (files.RUNBOOKS / f"{alert}.md").read_text()
    for line in re.findall(r"`(manage\.py [^`]+)`|^ {4,}(manage\.py .+)$", text, re.MULTILINE):
        command = next(filter(None, line))
        words = shlex.split(re.split(r" [>|#] ?", command)[0])
        name, rest = words[1], words[2:]
        parser = load_command_class(get_commands()[name], name).create_parser("manage.py", name)
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                parser.parse_args(rest)
        except (CommandError, SystemExit) as error:
            pytest.fail(f"{command}: {error}")


@pytest.mark.parametrize("alert", RUNBOOKS)
def test_the_addresses_of_a_runbook_exist(alert: str) -> None:
    text = (files.RUNBOOKS / f"{alert}.md").read_text()
    result = re.findall(r"/api/v1/[\w/{}…-]*", text)
    for address in result:
        path = parse.urlsplit(address.replace("ID", "1")).path
        assert resolve(path), address
