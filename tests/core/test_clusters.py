"""Objects of Cluster API, prefixes of clusters and the state of their connections."""

import contextlib
from datetime import UTC, datetime, timedelta
from ipaddress import IPv6Network, ip_network
from typing import Any

import hypothesis
import pytest
from hypothesis import given, strategies as st

from pools.core import blocks, errors
from pools.core.cluster_api import conditions, contract
from pools.core.cluster_api.conditions import Outcome, Reason, StatusForm
from pools.core.kubernetes import connection_status
from pools.core.kubernetes.connection_status import ConnectionFacts, ConnectionState
from tests.core.any_json import any_json

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


_TREES = any_json("""
    spec metadata poolRef apiGroup kind name namespace uid labels poolName gateway prefix family
    annotations finalizers address clusterName paused
""")


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


# --- Rule `cluster-prefix-is-divided`: node and instance prefixes ---------------------------------
@pytest.mark.parametrize(
    ("prefix", "part_text", "other"),
    [
        ("2001:db8::/48", "2001:db8:0:7::/64", "2001:db8:0:1::/64"),
        ("2001:db8::/48", "2001:db8::/64", "2001:db8:0:1::/64"),
        ("2001:db8::/48", "2001:db8::/49", "2001:db8:0:8000::/64"),
        ("2001:db8::/63", "2001:db8:0:1::/64", "2001:db8::/64"),
        ("2001:db8::/64", "2001:db8::/65", "2001:db8:0:0:8000::/80"),
    ],
)
def test_one_given_part_stays_and_the_other_gives_way(
    prefix: str, part_text: str, other: str
) -> None:
    whole, part = ip_network(prefix), ip_network(part_text)
    assert blocks.divide_cluster_prefix(whole, node=part) == (part, ip_network(other))
    node, instance = blocks.divide_cluster_prefix(whole, instance=part)
    assert instance == part
    assert node.subnet_of(whole)
    assert not node.overlaps(part)


@st.composite
def _prefix_and_part(draw: st.DrawFn) -> tuple[IPv6Network, IPv6Network]:
    length = draw(st.integers(16, 64))
    base = draw(st.integers(0x2000 << 112, 0xFEFF << 112))
    prefix = IPv6Network((base, length), strict=False)
    inner = draw(st.integers(length + 1, 128))
    number = int(prefix.network_address) + draw(st.integers(0, (1 << (128 - length)) - 1))
    return prefix, IPv6Network((number, inner), strict=False)


@hypothesis.given(_prefix_and_part())
def test_there_is_always_room_beside_a_smaller_part(
    case: tuple[IPv6Network, IPv6Network],
) -> None:
    prefix, part = case
    for divided in (
        blocks.divide_cluster_prefix(prefix, node=part),
        blocks.divide_cluster_prefix(prefix, instance=part),
    ):
        assert part in divided
        assert not divided[0].overlaps(divided[1])
        assert all(piece.subnet_of(prefix) for piece in divided)


@pytest.mark.parametrize(
    ("prefix", "parts", "code"),
    [
        ("2001:db8::/65", {}, "cluster_prefix"),
        ("2001:db8::/128", {}, "cluster_prefix"),
        ("10.0.0.0/8", {}, "cluster_prefix"),
        ("2001:db8::/48", {"node": "2001:db9::/64"}, "outside_cluster_prefix"),
        ("2001:db8::/48", {"instance": "2001:db8::/47"}, "outside_cluster_prefix"),
        ("2001:db8::/48", {"instance": "10.0.0.0/24"}, "outside_cluster_prefix"),
        ("2001:db8::/48", {"node": "2001:db8::/48"}, "cidr_overlap"),
        ("ffff:ffff:ffff:ffff::/64", {"node": "ffff:ffff:ffff:ffff::/64"}, "cidr_overlap"),
        (
            "2001:db8::/48",
            {"node": "2001:db8::/64", "instance": "2001:db8::/65"},
            "cidr_overlap",
        ),
    ],
)
def test_refused(prefix: str, parts: dict[str, str], code: str) -> None:
    networks = {name: ip_network(text) for name, text in parts.items()}
    with pytest.raises(errors.InvalidInput) as caught:
        blocks.divide_cluster_prefix(ip_network(prefix), **networks)
    assert caught.value.code == code


# --- The state of a connection, one line for each -------------------------------------------------
STALE_AFTER = timedelta(minutes=15)
JUST = NOW - timedelta(minutes=9)
LONG_AGO = NOW - timedelta(minutes=31)

CASES = {
    "nothing yet": (ConnectionFacts(False, None), ConnectionState.NEVER_SYNCED),
    "lately": (ConnectionFacts(False, JUST), ConnectionState.HEALTHY),
    "to the minute": (
        ConnectionFacts(False, NOW - STALE_AFTER),
        ConnectionState.HEALTHY,
    ),
    "long ago": (ConnectionFacts(False, LONG_AGO), ConnectionState.STALE),
    "401": (
        ConnectionFacts(False, JUST, "cluster_unauthorized", "no", 1),
        ConnectionState.UNAUTHORIZED,
    ),
    "403": (ConnectionFacts(False, JUST, "cluster_forbidden", "no", 1), ConnectionState.FORBIDDEN),
    "no answer": (
        ConnectionFacts(False, LONG_AGO, "cluster_unreachable", "no", 9),
        ConnectionState.UNREACHABLE,
    ),
    "TLS": (ConnectionFacts(False, None, "cluster_tls", "no", 1), ConnectionState.UNREACHABLE),
    "address": (
        ConnectionFacts(False, None, "url_not_allowed", "no", 1),
        ConnectionState.UNREACHABLE,
    ),
    "no CRD": (ConnectionFacts(False, JUST, "crd_missing", "no", 1), ConnectionState.CRD_MISSING),
    "another": (
        ConnectionFacts(False, JUST, "identity_changed", "no", 1),
        ConnectionState.IDENTITY_CHANGED,
    ),
    "503": (ConnectionFacts(False, JUST, "cluster_server_error", "no", 1), ConnectionState.FAILING),
    "a code of tomorrow": (
        ConnectionFacts(False, JUST, "new_code", "no", 1),
        ConnectionState.FAILING,
    ),
    "objects failed": (ConnectionFacts(False, JUST, failed_objects=2), ConnectionState.INCOMPLETE),
    "objects failed long ago": (
        ConnectionFacts(False, LONG_AGO, failed_objects=2),
        ConnectionState.STALE,
    ),
    "the next one is running": (
        ConnectionFacts(False, JUST, tried_at=NOW, running=True),
        ConnectionState.HEALTHY,
    ),
    "the next one died": (ConnectionFacts(False, JUST, tried_at=NOW), ConnectionState.FAILING),
    "the first one is running": (
        ConnectionFacts(False, None, tried_at=NOW, running=True),
        ConnectionState.NEVER_SYNCED,
    ),
    "the first one died": (ConnectionFacts(False, None, tried_at=NOW), ConnectionState.FAILING),
    "it ended": (ConnectionFacts(False, NOW, tried_at=JUST), ConnectionState.HEALTHY),
    "paused": (ConnectionFacts(True, JUST), ConnectionState.PAUSED),
    "paused while unreachable": (
        ConnectionFacts(True, JUST, "cluster_unreachable", "no"),
        ConnectionState.PAUSED,
    ),
}


@pytest.mark.parametrize(("facts", "state"), CASES.values(), ids=CASES)
def test_a_state(facts: ConnectionFacts, state: ConnectionState) -> None:
    status = connection_status.describe(facts, NOW, stale_after=STALE_AFTER)
    assert status.state is state
    assert ("Last error: no" in status.sentence) is bool(facts.error)


def test_each_state_has_a_case_a_key_and_a_sentence() -> None:
    assert {state for _, state in CASES.values()} == set(ConnectionState)
    assert len({state.key for state in ConnectionState}) == len(ConnectionState)
    for state in ConnectionState:
        assert " " not in state.key


def test_what_is_said_while_the_next_pass_runs_or_after_it_died() -> None:
    running = connection_status.describe(
        ConnectionFacts(False, JUST, tried_at=NOW, running=True), NOW, stale_after=STALE_AFTER
    )
    assert running.sentence == "The last full sync succeeded. The next one is running."
    died = connection_status.describe(
        ConnectionFacts(False, JUST, tried_at=NOW), NOW, stale_after=STALE_AFTER
    )
    assert died.sentence.startswith("The last sync was stopped, or its worker died")
