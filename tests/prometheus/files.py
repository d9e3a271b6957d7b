"""The rules, their runbooks, the boards: read as Prometheus and Grafana read them."""

import functools
import json
import re
from typing import Any

import yaml

from ipam_site import data_folder
from pools.platform.metrics import families

PROMETHEUS = data_folder.PROJECT / "deploy" / "prometheus"
GRAFANA = data_folder.PROJECT / "deploy" / "grafana"
RUNBOOKS = data_folder.PROJECT / "docs" / "runbooks"
RULES = PROMETHEUS / "cadastre.rules.yaml"
OF_TARGETS = {"instance", "job"}  # labels that Prometheus itself adds

_METRIC = re.compile(r"\bipam_[a-z0-9_]+\b")
_MATCHERS = re.compile(r"\b(ipam_[a-z0-9_]+)\{([^}]*)\}")
_BY = re.compile(r"\b(?:by|on|without|ignoring)\s*\(([^)]*)\)")
_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"')
_SUFFIXES = {
    families.Kind.GAUGE: ("",),
    families.Kind.COUNTER: ("",),
    families.Kind.INFO: ("",),
    families.Kind.SUMMARY: ("_sum", "_count"),
    families.Kind.HISTOGRAM: ("_sum", "_count", "_bucket"),
}


@functools.cache
def rules() -> tuple[dict[str, Any], ...]:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return tuple(rule for group in groups for rule in group["rules"])


@functools.cache
def boards() -> dict[str, dict[str, Any]]:
    return {path.name: json.loads(path.read_text()) for path in sorted(GRAFANA.glob("*.json"))}


def panels(board: dict[str, Any]) -> list[dict[str, Any]]:
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def expressions() -> dict[str, str]:
    """Every expression of rules and boards, by where it stands."""
    result = {f"{rule['alert']} {rule['labels']['severity']}": rule["expr"] for rule in rules()}
    for name, board in boards().items():
        for panel in panels(board):
            for target in panel["targets"]:
                result[f"{name} {panel['title']} {target['refId']}"] = target["expr"]
    return result


@functools.cache
def exported() -> dict[str, set[str]]:
    """The name of each sample that /metrics tells, and its labels."""
    result = {}
    for family in families.ALL:
        for suffix in _SUFFIXES[family.kind]:
            more = {"le"} if suffix == "_bucket" else set()
            result[family.name + suffix] = {*family.labels} | more
    return result


def metrics(expression: str) -> set[str]:
    return set(_METRIC.findall(_STRINGS.sub('""', expression)))


def wrong_labels(expression: str) -> list[str]:
    """Labels in matchers and groupings that none of the expression's metrics has."""
    bare = _STRINGS.sub('""', expression)
    wrong = [
        f"{metric}{{{label}}}"
        for metric, matchers in _MATCHERS.findall(bare)
        for label in re.findall(r"(\w+)\s*[=!]~?", matchers)
        if label not in exported().get(metric, set()) | OF_TARGETS
    ]
    all_labels = set().union(
        *(exported().get(metric, set()) for metric in metrics(bare)), OF_TARGETS
    )
    for labels in _BY.findall(bare):
        wrong += [item for item in re.findall(r"\w+", labels) if item not in all_labels]
    return wrong


def with_variables(expression: str) -> str:
    """As Grafana sends it, whatever is chosen."""
    text = expression.replace("$__rate_interval", "5m").replace("$__range", "1h")
    return re.sub(r"\$\{?\w+\}?", "x", text)


def variables(expression: str) -> set[str]:
    """Variables of the board in an expression, without Grafana's own."""
    return {item for item in re.findall(r"\$\{?(\w+)\}?", expression) if not item.startswith("__")}
