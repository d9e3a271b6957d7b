"""The boards: whole, of one kind, and their expressions are PromQL."""

import json
import pathlib
from typing import Any

import pytest
import yaml

from tests.prometheus import files
from tests.prometheus.test_rules import needs_promtool, promtool

BOARDS = files.boards()
# Grafana's names of units, as far as they are used.
UNITS = {
    "percentunit": ("ratio", " / "),
    "s": ("seconds",),
    "ops": ("rate(",),
    "reqps": ("rate(",),
    "bool_yes_no": ("connected", "active", "_ok"),
    "short": ("addresses",),
    "none": ("",),
}
PANELS = [
    pytest.param(panel, id=f"{name} {panel['title']}")
    for name, board in BOARDS.items()
    for panel in files.panels(board)
]


def test_there_are_four() -> None:
    assert list(BOARDS) == [
        "cadastre-cluster.json", "cadastre-control-plane.json", "cadastre-overview.json",
        "cadastre-pool.json",
    ]  # fmt: skip
    assert [board["uid"] for board in BOARDS.values()] == [n.removesuffix(".json") for n in BOARDS]


@pytest.mark.parametrize("name", BOARDS)
def test_a_board_needs_nothing_of_others(name: str) -> None:
    board = BOARDS[name]
    text = json.dumps(board)
    assert "http" not in text
    source, *others = board["templating"]["list"]
    assert (source["type"], source["query"], source["name"]) == (
        "datasource",
        "prometheus",
        "datasource",
    )
    names = {item["name"] for item in board["templating"]["list"]}
    for other in others:
        assert other["datasource"]["uid"] == "${datasource}"
        assert files.metrics(other["definition"]) <= set(files.exported())
    used = {word for text in _expressions(board) for word in files.variables(text)}
    assert used == names - {"datasource"}
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids))


def _expressions(board: dict[str, Any]) -> list[str]:
    exprs = [target["expr"] for panel in files.panels(board) for target in panel["targets"]]
    return exprs + [item.get("definition", "") for item in board["templating"]["list"]]


@pytest.mark.parametrize("name", BOARDS)
def test_no_two_panels_lie_on_each_other(name: str) -> None:
    covered: set[tuple[int, int]] = set()
    for panel in BOARDS[name]["panels"]:
        grid_pos = panel["gridPos"]
        assert grid_pos["x"] + grid_pos["w"] <= 24
        cells = {
            (x, y)
            for x in range(grid_pos["x"], grid_pos["x"] + grid_pos["w"])
            for y in range(grid_pos["y"], grid_pos["y"] + grid_pos["h"])
        }
        assert not cells & covered, panel["title"]
        covered |= cells


@pytest.mark.parametrize("panel", PANELS)
def test_a_panel_is_whole(panel: dict[str, Any]) -> None:
    assert panel["type"] in {"timeseries", "stat", "bargauge", "table"}
    assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    assert panel["title"]
    assert panel["targets"]
    unit = panel["fieldConfig"]["defaults"]["unit"]
    for target in panel["targets"]:
        assert target["datasource"] == panel["datasource"]
        expression = target["expr"]
        assert any(word in expression for word in UNITS[unit]), (unit, expression)
        # A share is told as one, seconds as seconds.
        if unit != "percentunit":
            assert "utilization_ratio" not in expression or "count(" in expression
        if unit != "s":
            assert "_seconds" not in expression or "count(" in expression


@needs_promtool
def test_every_expression_is_promql(tmp_path: pathlib.Path) -> None:
    rules = [
        {"record": f"panel:number{number}", "expr": files.with_variables(expression)}
        for number, expression in enumerate(files.expressions().values())
    ]
    path = tmp_path / "rules.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "boards", "rules": rules}]}))
    assert f"{len(rules)} rules found" in promtool("check", "rules", str(path))
    rules[0]["expr"] += ")"
    path.write_text(yaml.safe_dump({"groups": [{"name": "boards", "rules": rules}]}))
    with pytest.raises(AssertionError):
        promtool("check", "rules", str(path))


def test_every_metric_is_looked_at_somewhere() -> None:
    shown = {name for text in files.expressions().values() for name in files.metrics(text)}
    stems = {name.removesuffix(s) for name in shown for s in ("_sum", "_count", "_bucket", "")}
    unseen = {family.name for family in files.families.ALL} - stems
    assert unseen == set()
