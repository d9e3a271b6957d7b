"""Objects of Cluster API as values, and the forms of their conditions."""

import contextlib
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, strategies as st

from pools.core import errors
from pools.core.cluster_api import conditions, contract
from pools.core.cluster_api.conditions import Outcome, Reason, StatusForm

NOW = datetime(2026, 5, 5, 14, 2, tzinfo=UTC)
EARLIER = "2026-01-01T00:00:00Z"


def _claim(*, metadata: Any = None, **spec: Any) -> dict[str, Any]:
    reference = {"apiGroup": contract.GROUP, "kind": contract.POOL_KIND, "name": "pool"}
    return {
        "metadata": {"namespace": "blue", "name": "one", "uid": "u-1", **(metadata or {})},
        "spec": {"poolRef": reference, **spec},
    }


FOREIGN: dict[str, Any] = {
    "no reference": {"poolRef": None},
    "another group": {
        "poolRef": {"apiGroup": "ipam.metal3.io", "kind": "CadastrePool", "name": "x"}
    },
    "another kind": {"poolRef": {"apiGroup": contract.GROUP, "kind": "IPPool", "name": "x"}},
    "no group": {"poolRef": {"kind": "CadastrePool", "name": "x"}},
    "a text": {"poolRef": "pool"},
    "a kind that is no text": {"poolRef": {"apiGroup": contract.GROUP, "kind": ["x"]}},
}


@pytest.mark.parametrize("case", FOREIGN)
def test_claims_of_others(case: str) -> None:
    assert contract.pool_key(_claim(**FOREIGN[case])) is None


def test_a_global_pool_has_no_namespace() -> None:
    reference = {"apiGroup": contract.GROUP, "kind": contract.GLOBAL_POOL_KIND, "name": "pool"}
    key = contract.pool_key(_claim(poolRef=reference))
    assert str(key) == "GlobalCadastrePool pool"
    assert str(contract.pool_key(_claim())) == "CadastrePool blue/pool"


@pytest.mark.parametrize(
    ("manifest", "cluster"),
    [
        (_claim(), ""),
        (_claim(clusterName="spec"), "spec"),
        (_claim(metadata={"labels": {contract.CLUSTER_NAME: "label"}}), "label"),
        (_claim(clusterName="spec", metadata={"labels": {contract.CLUSTER_NAME: "x"}}), "spec"),
        (_claim(metadata={"labels": None}), ""),
    ],
)
def test_the_cluster_of_a_claim(manifest: dict[str, Any], cluster: str) -> None:
    assert contract.parse_claim(manifest).cluster == cluster


@pytest.mark.parametrize(
    ("manifest", "paused"),
    [
        ({"spec": {"paused": True}}, True),
        ({"spec": {"paused": False}}, False),
        ({"spec": {"paused": "true"}}, False),
        (
            {"metadata": {"annotations": {contract.PAUSED: "false"}}},
            True,
        ),  # that it is there counts
        ({}, False),
        ({"spec": None, "metadata": {"annotations": None}}, False),
    ],
)
def test_a_paused_cluster(manifest: dict[str, Any], paused: bool) -> None:
    assert contract.is_cluster_paused(manifest) is paused


def _pool(**spec: Any) -> dict[str, Any]:
    return {
        "kind": contract.POOL_KIND,
        "metadata": {"name": "p"},
        "spec": {"poolName": "m", **spec},
    }


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"poolName": None}, "spec.poolName"),
        ({"poolName": "Not A Name"}, "spec.poolName"),
        ({"family": 5}, "spec.family"),
        ({"family": True}, "spec.family"),
        ({"family": [4]}, "spec.family"),
        ({"family": 4.0}, "spec.family"),
        ({"poolName": ""}, "spec.poolName"),
        ({"prefix": 0}, "spec.prefix"),
        ({"prefix": -1}, "spec.prefix"),
        ({"prefix": 9999}, "spec.prefix"),
        ({"prefix": "24"}, "spec.prefix"),
        ({"gateway": "10.0.0.999"}, "spec.gateway"),
        ({"gateway": "fe80::1", "family": 4}, "spec.gateway"),
    ],
)
def test_an_invalid_pool_names_its_field(spec: dict[str, Any], field: str) -> None:
    with pytest.raises(errors.InvalidInput) as refused:
        contract.parse_pool(_pool(**spec))
    assert [problem.field for problem in refused.value.problems] == [field]


def test_the_form_of_a_version_follows_its_schema() -> None:
    conditions_ = {"properties": {"conditions": {}}}
    both = {"properties": {"status": {"properties": {"conditions": {}, "v1beta2": conditions_}}}}
    old = {"properties": {"status": conditions_}}
    assert conditions.status_form("v1beta1", both) == StatusForm(
        ("v1beta2", "conditions"), ("conditions",)
    )
    assert conditions.status_form("v1beta1", old) == StatusForm(None, ("conditions",))
    assert conditions.status_form("v1beta2", old) == StatusForm(("conditions",), None)
    assert conditions.status_form("v1beta1", None) == StatusForm(None, ("conditions",))
    assert conditions.status_form("v1beta2", None) == StatusForm(("conditions",), None)


@pytest.mark.parametrize(
    ("outcome", "moment"),
    [
        (Outcome(Reason.POOL_NOT_READY, "another text"), EARLIER),
        (Outcome(), "2026-05-05T14:02:00Z"),
    ],
    ids=["same status", "another status"],
)
def test_the_transition_time_is_that_of_the_status(outcome: Outcome, moment: str) -> None:
    condition = {"type": "Ready", "status": "False", "lastTransitionTime": EARLIER}
    current = {"metadata": {"generation": 3}, "status": {"conditions": [condition]}}
    form = StatusForm(("conditions",), None)
    (written,) = conditions.claim_status(outcome, "", form, current, NOW)["conditions"]
    assert (written["lastTransitionTime"], written["observedGeneration"]) == (moment, 3)


def test_a_severity_only_where_something_is_wrong() -> None:
    form = StatusForm(None, ("deprecated", "v1beta1", "conditions"))
    ready = conditions.claim_status(Outcome(), "one", form, {}, NOW)
    assert ready["addressRef"] == {"name": "one"}
    (condition,) = ready["deprecated"]["v1beta1"]["conditions"]
    assert set(condition) == {"type", "status", "lastTransitionTime"}
    failed = conditions.claim_status(Outcome(Reason.ALLOCATION_FAILED), "", form, {}, NOW)
    (condition,) = failed["deprecated"]["v1beta1"]["conditions"]
    assert condition["severity"] == "Error"
    assert condition["message"], "the definition takes no empty text"


_TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["spec", "metadata", "poolRef", "apiGroup", "kind", "name", "namespace", "uid", "labels", "poolName",
             "gateway", "prefix", "family", "annotations", "finalizers", "address", "clusterName", "paused"]
        ),
        inner,
        max_size=6,
    ),
    max_leaves=20,
)  # fmt: skip


@given(
    st.fixed_dictionaries(
        {"spec": _TREES, "metadata": st.dictionaries(st.sampled_from(["labels", "annotations", "finalizers"]), _TREES)}
    )
)  # fmt: skip
def test_any_object_is_read_or_refused(manifest: dict[str, Any]) -> None:
    """Fuzzy conversion: an object that passed no schema raises nothing but its refusal."""
    manifest["kind"] = contract.POOL_KIND
    manifest["metadata"] |= {"name": "one", "namespace": "blue", "uid": "u-1"}
    contract.is_cluster_paused(manifest)
    contract.address_of(manifest)
    with contextlib.suppress(errors.InvalidInput):
        contract.parse_pool(manifest)
    if contract.pool_key(manifest) is not None:
        with contextlib.suppress(errors.InvalidInput):
            contract.parse_claim(manifest)
