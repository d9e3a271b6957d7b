"""RoleBindings of a cluster, and groups of OpenShift, from the API server to who sees what."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection as database

from claims.access import cluster_owners as access_handlers, namespaces
from claims.models import ClusterGroupMember, ClusterOwner
from claims.networks.handlers import NetworkAttachmentDefinitions
from pools.models import Finding, ObservedObject, SyncRun
from tests.claims.networks.ovn import Ovn, nad
from tests.kube import gateways
from tests.kube.manifests import Manifest, build

RBAC = "rbac.authorization.k8s.io"
NADS = {"apiGroups": ["k8s.cni.cncf.io"], "resources": ["network-attachment-definitions"], "verbs": ["list", "watch"]}  # fmt: skip
HANDLERS = (
    NetworkAttachmentDefinitions(),
    access_handlers.RoleBindings(),
    access_handlers.Groups(),
)


@pytest.fixture
def definitions() -> tuple[str, ...]:
    return ("k8s.cni.cncf.io_network-attachment-definitions", "user.openshift.io_groups")


@pytest.fixture(autouse=True)
def _empty(ovn: Ovn) -> None:
    for item in ovn.server.objects("rolebindings"):
        if item["metadata"]["namespace"] == "default":
            ovn.remove("rolebindings", item["metadata"]["name"], "default")
    User.objects.create(username="vera")


def passed(ovn: Ovn, token: str | None = None) -> SyncRun:
    run = ovn.sync(*HANDLERS, open_client=lambda _: gateways.to(ovn.server, token=token))
    assert run.succeeded, (run.error_code, run.error, run.kinds)
    return run


def tell(ovn: Ovn, *events: tuple[str, Manifest]) -> None:
    """What a watch of RoleBindings says."""
    run = ovn.ingest(access_handlers.RoleBindings.kind, HANDLERS[1:], *events)
    assert not run.error_code, (run.error_code, run.error)


def binding(
    name: str, *subjects: tuple[str, str], role: str = "kubevirt.io:edit", kind: str = "ClusterRole"
) -> Manifest:
    def subject(kind: str, name: str) -> Manifest:
        place = {"namespace": "default"} if kind == "ServiceAccount" else {"apiGroup": RBAC}
        return {"kind": kind, "name": name} | place

    role_ref = {"apiGroup": RBAC, "kind": kind, "name": role}
    parts: Manifest = {"roleRef": role_ref, "subjects": [subject(*item) for item in subjects]}
    return build(f"{RBAC}/v1", "RoleBinding", name, "default", **parts)


def group(name: str, *users: str) -> Manifest:
    return build("user.openshift.io/v1", "Group", name, users=list(users))


def observed_owners() -> list[tuple[str, str, str, str]]:
    rows = ClusterOwner.objects.order_by("binding", "subject")
    return list(rows.values_list("binding", "subject_kind", "subject", "role"))


def members() -> list[str]:
    return [str(member) for member in ClusterGroupMember.objects.all()]


def sees(ovn: Ovn) -> bool:
    return namespaces.owner_scope(User.objects.get(username="vera")).has(ovn.cluster.pk, "default")


@pytest.mark.exhaustive
def test_bindings_to_the_roles_make_owners(ovn: Ovn) -> None:
    ovn.put(nad())
    many = [("User", "vera"), ("Group", "team"), ("ServiceAccount", "bot"),
            ("User", "system:admin"), ("Group", "system:authenticated")]  # fmt: skip
    ovn.put(binding("edit", *many))
    ovn.put(binding("mine", ("User", "otto"), role="kubevirt.io:admin", kind="Role"))
    ovn.put(binding("other", ("User", "vera"), role="view"))
    ovn.put(binding("bot", ("ServiceAccount", "bot")))
    passed(ovn)
    expected = [
        ("edit", "Group", "team", "kubevirt.io:edit"),
        ("edit", "User", "vera", "kubevirt.io:edit"),
        ("mine", "User", "otto", "kubevirt.io:admin"),
    ]
    assert observed_owners() == expected
    assert sees(ovn)
    ids = set(ClusterOwner.objects.values_list("pk", flat=True))
    assert {kind["changed"] for kind in passed(ovn).kinds.values()} == {0}
    assert set(ClusterOwner.objects.values_list("pk", flat=True)) == ids
    ovn.put(binding("edit", ("Group", "crew")))
    ovn.remove("rolebindings", "mine", "default")
    passed(ovn)  # one complete list says so
    assert observed_owners() == [("edit", "Group", "crew", "kubevirt.io:edit")]
    assert not sees(ovn)


def test_a_binding_that_was_missed_once_is_back_with_the_next_list(ovn: Ovn) -> None:
    ovn.put(nad())
    ovn.put(binding("edit", ("User", "vera")))
    passed(ovn)
    row = ObservedObject.objects.get(kind="RoleBinding")
    ClusterOwner.objects.all().delete()
    ObservedObject.objects.filter(pk=row.pk).update(missed_at=row.changed_at)
    passed(ovn)
    assert sees(ovn)


def test_a_watch_tells_of_bindings_at_once(ovn: Ovn) -> None:
    ovn.put(nad())
    ovn.put(group("team", "vera"))
    passed(ovn)
    first = ovn.put(binding("edit", ("User", "vera")))
    tell(ovn, ("ADDED", first))
    assert sees(ovn)
    ovn.remove("rolebindings", "edit", "default")
    second = ovn.put(binding("edit", ("Group", "team")))
    tell(ovn, ("DELETED", first), ("ADDED", second))
    assert [item[2] for item in observed_owners()] == ["team"]
    assert sees(ovn)
    tell(ovn, ("MODIFIED", second | {"metadata": second["metadata"] | {"resourceVersion": "x"}, "subjects": []}))  # fmt: skip
    assert not sees(ovn)


def test_users_of_a_group_of_openshift(ovn: Ovn) -> None:
    ovn.put(nad())
    ovn.put(binding("edit", ("Group", "team")))
    ovn.put(group("team", "vera", "system:admin"))
    ovn.put(group("others", "vera", "otto"))
    passed(ovn)
    assert members() == ["vera in team"]
    assert sees(ovn)
    ovn.put(group("team", "otto"))
    passed(ovn)
    assert members() == ["otto in team"]
    assert not sees(ovn)


@pytest.mark.exhaustive
def test_without_the_right_all_else_goes_on_and_what_was_known_stays(ovn: Ovn) -> None:
    ovn.put(nad())
    ovn.put(binding("edit", ("User", "vera")))
    passed(ovn)
    identity = {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]}
    token = ovn.server.user("reader", [NADS, identity])
    ovn.remove("rolebindings", "edit", "default")
    ovn.put(nad("second", name="tenant"))
    run = passed(ovn, token)
    assert run.kinds["NetworkAttachmentDefinition"]["changed"] == 1
    assert sees(ovn)
    findings: Any = Finding.objects.filter(code="not_permitted").order_by("kind")
    assert [finding.subject for finding in findings] == ["groups", "rolebindings"]
    assert "VM owners" in findings[1].message
    ovn.connection.refresh_from_db()
    assert ovn.connection.error_code == ""
    passed(ovn)
    assert (sees(ovn), Finding.objects.exists()) == (False, False)


def _run_with_failures(ovn: Ovn) -> list[tuple[str, str]]:
    """Kind and subject of the objects that failed alone in a sync run."""
    run = ovn.sync(*HANDLERS)
    assert not run.error_code, (run.error_code, run.error)
    assert not [kind for kind in run.kinds.values() if kind.get("code")], run.kinds
    findings = Finding.objects.filter(code="object_failed")
    return list(findings.order_by("kind").values_list("kind", "subject"))


def test_a_binding_that_cannot_be_stored_fails_alone(ovn: Ovn, settings: Any) -> None:
    """RBAC has no limit for the name of a role; the column has one of 253 characters."""
    settings.IPAM_VM_OWNER_ROLES = ["kubevirt.io:edit", "r" * 300]
    ovn.put(nad())
    ovn.put(binding("a", ("User", "otto")))
    ovn.put(binding("bad", ("User", "vera"), role="r" * 300))
    ovn.put(binding("z", ("User", "vera")))
    assert _run_with_failures(ovn) == [("RoleBinding", "default/bad")]
    assert [(item[0], item[2]) for item in observed_owners()] == [("a", "otto"), ("z", "vera")]
    ovn.remove("rolebindings", "bad", "default")
    assert _run_with_failures(ovn) == []


def test_a_group_that_cannot_be_stored_fails_alone(ovn: Ovn) -> None:
    """Each name that is read can be stored, so that a rule of the database refuses one here."""
    constraint = "ADD CONSTRAINT refused CHECK (username <> 'bad')"
    with database.cursor() as cursor:
        cursor.execute(f"ALTER TABLE claims_clustergroupmember {constraint}")
    ovn.put(nad())
    ovn.put(binding("edit", ("Group", "a"), ("Group", "bad"), ("Group", "z")))
    ovn.put(group("a", "otto"))
    ovn.put(group("bad", "bad"))
    ovn.put(group("z", "vera"))
    assert _run_with_failures(ovn) == [("Group", "bad")]
    assert members() == ["otto in a", "vera in z"]
    assert sees(ovn)
    ovn.put(group("bad", "good"))
    assert _run_with_failures(ovn) == []
    assert ClusterGroupMember.objects.filter(group="bad", username="good").exists()
