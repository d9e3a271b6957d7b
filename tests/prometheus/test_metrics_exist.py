"""Whatever rules and boards ask for is told by /metrics, with these labels."""

import pytest

from tests.prometheus import files

EXPRESSIONS = files.expressions()


@pytest.mark.parametrize("place", EXPRESSIONS)
def test_metrics_and_labels_exist(place: str) -> None:
    expression = EXPRESSIONS[place]
    names = files.metrics(expression)
    assert names, expression
    assert names <= set(files.exported()), names - set(files.exported())
    assert files.wrong_labels(expression) == [], expression


@pytest.mark.parametrize(
    ("expression", "wrong"),
    [
        ('ipam_pool_addresses{sate="free"}', ["ipam_pool_addresses{sate}"]),
        ("sum by (address) (ipam_pool_addresses)", ["address"]),
        ('max by (cluster) (ipam_pool_addresses{state=~"free|held", pool!="x"})', []),
    ],
)
def test_a_label_that_is_none_is_found(expression: str, wrong: list[str]) -> None:
    assert files.wrong_labels(expression) == wrong


def test_the_tests_of_rules_feed_metrics_that_exist() -> None:
    import yaml

    for path in (files.PROMETHEUS / "tests").glob("*.yaml"):
        for test in yaml.safe_load(path.read_text())["tests"]:
            for series in test["input_series"]:
                assert files.metrics(series["series"]) <= set(files.exported()), path
                assert files.wrong_labels(series["series"]) == [], path
