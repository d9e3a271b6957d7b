"""One of everything: a row for each parameter of each address, some of them a VM owner's own."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import Group, User
from django.test import Client
from knox.models import AuthToken

from claims.access import memberships
from claims.models import Entry, Network, NetworkSettings
from claims.models.networks import EntrySource
from claims.waves import waves
from pools import models
from pools.core.observed.uses import Role
from pools.models.fields import Now
from pools.platform import database
from pools.platform.alerts import outbox, targets
from pools.register import environments, journal
from pools.register.imports import drafts as register_drafts, sources as netbox_sources
from pools.webhooks import views
from tests import factories, people
from tests.claims import worlds
from tests.claims.access import two_worlds
from tests.claims.imports import drafts
from tests.edges import api as apis
from tests.kube import certificates, kubeconfigs
from tests.observed import rows

# Loopback is refused before anything is sent.
KUBECONFIG = kubeconfigs.text("https://127.0.0.1:6443", certificates.Authority().pem, token="t")
ROLES = ("nobody", "viewer", "operator", "administrator")
OWNER, STRANGER = "VM owner", "VM owner of another namespace"


@dataclass
class Everything:
    """`rows` has an id by model, as the admin's addresses name them; `values` by parameter."""

    owner: two_worlds.Owner
    rows: dict[str, Any] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)

    def user(self, role: str) -> Any:
        """Somebody with a role, who may enter the admin."""
        if role == OWNER:
            return self.owner.user
        if role == STRANGER:
            return User.objects.get(username="stranger")
        user = User.objects.create(
            username=f"the-{role}", is_staff=True, is_superuser=role == "superuser"
        )
        if role in ROLES[1:]:
            user.groups.set([Group.objects.get(name=role)])
        return user


def create() -> Everything:
    """A little of everything, made by several hands."""
    world = Everything(two_worlds.Owner())
    api = apis.Api()
    _register(world, api)
    _of_clusters(world, api)
    _alerts(world)
    _networks(world)
    stranger = User.objects.create(username="stranger")
    memberships.create(world.owner.cluster, ["zulu-ns"], author=factories.BY, user=stranger)
    saved = models.SavedFilter.objects.create(
        owner=world.owner.user, list="knox.authtoken", name="mine", shared=True
    )
    world.values |= {"label": saved.list, "filter_id": saved.pk}
    world.values |= {"list_name": "claims.entry", "parameter": "network", "offered": "networks"}
    world.values |= {"uidb64": "MQ", "token": "x"}  # of no link
    world.values["pk"] = 1  # of a passkey, whose page asks for the password first
    world.rows |= {
        "auth.user": User.objects.create(username="somebody").pk,
        "auth.group": Group.objects.get(name="viewer").pk,
        "claims.membership": world.values["membership_id"],
        "pools.event": models.Event.objects.order_by("pk")[0].pk,
    }
    return world


def _register(world: Everything, api: apis.Api) -> None:
    """Pools with CIDRs, reserved ranges, blocks in each state, requests and a migration."""
    api.cluster("edge", cluster_prefix=apis.PREFIX)
    api.cluster("empty")
    api("PUT", "clusters/prod/connection/", {"kubeconfig": KUBECONFIG, "offline": True})
    pool = api.vm_pool("10.0.0.0/29", cooldown=600)
    full = api.vm_pool("10.2.0.1/32", name="full")
    spare = api.vm_pool("10.1.0.0/29", "fd01::/125", name="spare")
    cidr = api("GET", f"pools/{spare}/cidrs/").json()["results"][0]["id"]
    reserved = api.create(
        f"pools/{spare}/cidrs/{cidr}/reserved-ranges/", {"range": "10.1.0.1-10.1.0.2"}
    )
    api.create(f"pools/{api.pool('instance')}/allocations/", apis.holder("i-1", "instance"))
    cooling = api.take(pool, "b")
    api("POST", f"blocks/{cooling['id']}/release/", apis.holder("b"))
    held = api.take(pool, "a", env="env-1")
    lost = api.take(pool, "lost")
    api.take(full, "f")
    waits = api("POST", f"pools/{full}/allocations/", apis.holder("w") | {"wait": True}).json()
    part = {"mask_size": 24, "cidrs": ["10.6.0.0/16"]}
    pods = api.create(
        "pools/", {"cluster": "prod", "name": "pods", "category": "pod", "ipv4": part}
    )
    environment = api("GET", "environments/").json()["results"][0]["id"]
    declared = environments.declare(
        models.Cluster.objects.get(name="prod"), "acme", "declared", author=factories.BY
    ).pk
    container = api.create("containers/", {"cidr": "10.0.0.0/8"})["id"]
    custom_field = api.create(
        "custom-fields/",
        {"name": "rack", "label": "Rack", "type": "number", "object_types": ["pool"]},
    )["id"]
    migration = api.create(f"pools/{pods['id']}/migrations/", {"cidr": "10.6.0.0/16"})
    drafted_register, committed_register = _register_imports()
    netbox = netbox_sources.create(
        {"name": "dc", "url": "https://netbox.example:443", "cluster": models.Cluster.objects.get(name="edge")},
        token="0123456789", author=factories.BY,
    ).pk  # fmt: skip
    world.values |= {
        "pool_id": pool, "spare": spare, "pods": pods["id"], "cidr_id": cidr, "block_id": held["id"],
        "range_id": reserved["id"], "cooling": cooling["id"], "lost": lost["id"],
        "migration_id": migration["id"], "request_id": waits["id"],
        "uid": "u", "kind": "vm", "holder": "a", "address": "10.0.0.1", "instance": "i-1",
        "form": "csv", "empty": "empty", "adopt": "adopt", "content_type_id": 1,
        "app_label": "pools", "url": "nowhere", "environment_id": environment, "container_id": container, "declared": declared,
        "custom_field_id": custom_field,
        "drafted_register": drafted_register, "committed_register": committed_register,
        "netbox_source_id": netbox, "exported": "prefixes",
    }  # fmt: skip
    world.rows |= {
        "pools.pool": spare, "pools.block": held["id"],
        "pools.allocationrequest": waits["id"],
        "pools.environment": declared, "pools.container": container, "pools.poolcidr": cidr,
        "pools.customfield": custom_field,
        "pools.netboxsource": netbox, "pools.cidrmigration": migration["id"],
    }  # fmt: skip


def _register_imports() -> tuple[int, int]:
    """Make a draft of an import, and a committed one."""
    cluster = models.Cluster.objects.get(name="empty")
    import_ids = [
        register_drafts.IMPORTS.create(
            [("", text)], models.RegisterImport(cluster=cluster), author=factories.BY
        ).pk
        for text in (b"prefix\n10.70.0.0/24\n", b"prefix\n10.71.0.0/24\n")
    ]
    register_drafts.IMPORTS.commit(import_ids[1], author=factories.BY)
    return import_ids[0], import_ids[1]


def _of_clusters(world: Everything, api: apis.Api) -> None:
    """What reconciling leaves behind."""
    cluster = models.Cluster.objects.get(name="prod")
    observed_object = models.ObservedObject.objects.create(
        cluster=cluster, kind="CiliumNode", name="n", uid="u",
        resource_version="1", manifest={}, first_seen_at=Now(), changed_at=Now(),
    )  # fmt: skip
    drift = models.Drift.objects.create(
        cluster=cluster, kind="CiliumPodIPPool", name="p", path="spec", since=Now()
    )
    finding = models.Finding.objects.create(
        cluster=cluster, kind="k", subject="s", code="c", since=Now()
    )
    run = models.SyncRun.objects.create(cluster=cluster, trigger="people", started_at=Now())
    block = models.Block.objects.get(pk=world.values["lost"])
    assert block.allocated_at is not None
    leak = models.Leak.objects.create(
        block=block, cluster=cluster, source="tooling", observations=2,
        holder_kind=block.holder_kind, holder_id=block.holder_id, allocated_at=block.allocated_at,
        missed_at=Now(), observed_at=Now(), confirmed_at=Now(),
    )  # fmt: skip
    observed = rows.observed(cluster, Role.SERVICES, "10.96.0.0/12", name="kubernetes", uid="u")
    bound = worlds.bound(cluster, "bound-ns", "bound-user")
    world.values |= {
        "cluster": "prod", "object_id": observed_object.pk, "drift_id": drift.pk, "decision": "ignore",
        "observed_cidr_id": observed.pk, "cluster_id": cluster.pk, "key": views.make(cluster, author=factories.BY),
    }  # fmt: skip
    world.rows |= {
        "pools.cluster": cluster.pk, "pools.observedobject": observed_object.pk, "pools.drift": drift.pk,
        "pools.finding": finding.pk, "pools.observedcidr": observed.pk, "pools.run": run.pk, "pools.leak": leak.pk,
        "claims.clusterowner": bound.pk,
    }  # fmt: skip


def _alerts(world: Everything) -> None:
    """An alert, and a message to a target."""
    alert = models.Alert.objects.create(
        code="x", subject="y", level="error", title="t", since=Now(), seen_at=Now()
    )
    target, _secret = targets.create("ops", "https://example.org/", author=factories.BY)
    delivery = outbox.write_test(target).pk
    silence = models.Silence.objects.create(
        code="x",
        until=database.now() + timedelta(days=1),
        reason="r",
        made_by="ann",
        created_at=Now(),
    )
    world.values |= {
        "silence_id": silence.pk,
        "runbook": "IpamClusterStale",
        "chapter": "concepts",
        "alert_id": alert.pk,
        "target_id": target.pk,
        "delivery_id": delivery,
    }
    world.rows |= {
        "pools.alert": alert.pk, "pools.webhooktarget": target.pk, "pools.silence": silence.pk,
    }  # fmt: skip


def _networks(world: Everything) -> None:
    """What the VM owner has, and what is above all owners."""
    owner = world.owner
    network, ippool = owner.network, owner.ippools[0]
    entry = Entry.objects.filter(ippool=ippool)[0]
    Entry.objects.filter(pk=entry.pk).update(source=EntrySource.REQUEST)
    claim = network.claims.all()[0]
    workload = network.workloads.all()[0]
    wave = waves.create(owner.cluster, "Saturday", author=worlds.BY)
    waves.add(wave.pk, [("alpha", "web-0")], author=worlds.BY)
    settings = NetworkSettings.objects.create(cluster=owner.cluster)
    empty = Network.objects.create(cluster=owner.cluster, name="empty-net", kind="cudn")
    without = Network.objects.create(cluster=owner.cluster, name="bare-net", kind="cudn")
    rows = [drafts.row("web-5", "02:aa:aa:aa:aa:55", "10.60.0.55")]
    drafted = drafts.draft(network, *rows, namespace="alpha", user=owner.user)
    written = drafts.draft(
        network, drafts.row("web-6", "02:aa:aa:aa:aa:66", "10.60.0.66"), namespace="alpha",
        user=owner.user, commit_wanted=True,
    )  # fmt: skip
    network.nads.update(allow_persistent_ips=True, role="primary")
    decision = owner.cluster.decisions.all()[0]
    membership = owner.user.memberships.all()[0].pk
    world.values |= {
        "network_id": network.pk, "ippool_id": ippool.pk, "entry_id": entry.pk, "claim_id": claim.pk,
        "empty_network": empty.pk, "bare_network": without.pk, "import_id": drafted.pk,
        "written": written.pk, "number": 1, "wave_id": wave.pk, "vm_id": wave.vms.all()[0].pk,
        "membership_id": membership,
    }  # fmt: skip
    note = journal.add(
        network, "Ask Ann first.", "info", user=factories.user(), author=worlds.BY
    ).pk
    world.values |= {"note_id": note, "subject": "network", "subject_id": network.pk}
    world.rows |= {
        "claims.network": network.pk, "claims.ippool": ippool.pk, "claims.entry": entry.pk,
        "claims.ipamclaim": claim.pk, "claims.workload": workload.pk, "claims.wave": wave.pk,
        "claims.networksettings": settings.pk, "pools.import": drafted.pk,
        "claims.decision": decision.pk,
    }  # fmt: skip


def session(user: Any) -> Client:
    return people.signed_in(user, raise_request_exception=False)


def token(user: Any) -> Client:
    digest = AuthToken.objects.create(user)[1]
    return Client(headers={"Authorization": f"Token {digest}"}, raise_request_exception=False)
