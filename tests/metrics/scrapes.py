"""What a scrape says, as numbers."""

from collections.abc import Iterable, Iterator

from prometheus_client import parser
from prometheus_client.metrics_core import Metric

from ipam_site.http import metrics


def families() -> dict[str, Metric]:
    """All metrics of a scrape by their name (without `_total`), as a reader of the text finds them."""
    text = metrics.render().decode()
    return {metric.name: metric for metric in parser.text_string_to_metric_families(text)}


def values(name: str, **labels: str) -> list[float]:
    """The samples of that name with these labels (and others)."""
    return [value for _, value in _matching(families().values(), name, labels)]


def value(name: str, **labels: str) -> float:
    """The one sample of that name with these labels (and others)."""
    (result,) = values(name, **labels)
    return result


def author(label: str, name: str, **labels: str) -> dict[str, float]:
    """The samples of that name with these labels, by another label."""
    return {result[label]: value for result, value in _matching(families().values(), name, labels)}


def _matching(
    metrics: Iterable[Metric], name: str, labels: dict[str, str]
) -> Iterator[tuple[dict[str, str], float]]:
    for metric in metrics:
        for sample in metric.samples:
            if sample.name == name and labels.items() <= sample.labels.items():
                yield sample.labels, sample.value
