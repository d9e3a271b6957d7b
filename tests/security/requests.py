"""What is asked of each address, so that whoever may do it succeeds: its parameters and its body."""

import json
import re
from dataclasses import dataclass, field, replace
from typing import Any

from tests.claims.access import answers
from tests.edges import api as apis
from tests.security.everything import KUBECONFIG, Everything

MANIFEST = (
    "{apiVersion: cilium.io/v2, kind: CiliumPodIPPool, metadata: {name: green},"
    " spec: {ipv4: {cidrs: [10.20.0.0/16], maskSize: 24}}}"
)
VMS = {"mask_size": 32, "cidrs": ["10.4.0.0/29"]}
POOL = {"cluster": "prod", "name": "n", "category": "vm", "ipv4": VMS}
REPORT = {
    "cluster": "prod", "holder_kind": "instance", "sequence": 1, "complete": True, "holders": [],
}  # fmt: skip
ENTRY = {
    "mac": "02:aa:aa:aa:aa:77", "ips": ["10.60.0.77/24"], "vm": "web-7", "namespace": "alpha",
}  # fmt: skip
CLAIM = {"cluster": "prod", "namespace": "alpha", "network": "alpha-net", "vm": "web-8"}
NETWORK = {
    "cluster": "prod", "name": "cluster_udn_new", "kind": "cudn", "topology": "layer2",
    "role": "primary", "lifecycle": "Persistent", "subnets": ["10.70.0.0/24"],
}  # fmt: skip
VM_ROW = {"vm": "web-9", "mac": "02:aa:aa:aa:aa:99", "ips": ["10.60.0.99"]}


@dataclass(frozen=True)
class Case:
    """A body; `use` has the parameters that are others than usual, by the names of `values`.

    `status` is that of somebody who may do it; 0 is any success.
    """

    body: Any = None
    use: dict[str, str] = field(default_factory=dict)
    query: str = ""
    status: int = 0


def case(body: Any = None, query: str = "", status: int = 0, **use: str) -> Case:
    return Case(body, use, query, status)


# By method and route; with a word in brackets for a body that asks for more, as in docs/reference/permissions.md.
API: dict[str, Case] = {
    "GET /clusters/{cluster}/objects/{object_id}/": case(),
    "GET /pools/{pool_id}/forecast/": case(pool_id="pods"),
    "GET /pools/{pool_id}/manifest/": case(pool_id="pods"),
    "GET /pools/{pool_id}/migrations/{migration_id}/": case(pool_id="pods"),
    "POST /pools/{pool_id}/allocations/": case(apis.holder("n")),
    "POST /pools/": case(POOL),
    "PATCH /pools/{pool_id}/": case({"description": "x"}),
    "DELETE /pools/{pool_id}/": case(pool_id="spare"),
    "POST /pools/import/": case({"cluster": "prod", "manifest": MANIFEST}),
    "POST /pools/{pool_id}/cidrs/": case({"cidr": "10.5.0.0/29"}),
    "DELETE /pools/{pool_id}/cidrs/{cidr_id}/": case(pool_id="spare"),
    "POST /pools/{pool_id}/cidrs/{cidr_id}/reserved-ranges/": case(
        {"range": "10.1.0.5-10.1.0.6"}, pool_id="spare"
    ),
    "DELETE /pools/{pool_id}/reserved-ranges/{range_id}/": case(pool_id="spare"),
    "POST /pools/{pool_id}/migrations/": case({"cidr": "10.1.0.0/29"}, pool_id="spare"),
    "POST /pools/{pool_id}/migrations/{migration_id}/steps/": case(
        {"step": "reserve"}, pool_id="pods"
    ),
    "POST /blocks/{block_id}/release/": case(apis.holder("a")),
    "POST /blocks/{block_id}/release/ (force)": case({"force": True, "reason": "gone"}),
    "POST /blocks/{block_id}/end-cooldown/": case({"reason": "unused"}, block_id="cooling"),
    "POST /blocks/{block_id}/reclaim/": case(
        apis.holder("lost") | {"reason": "gone"}, block_id="lost"
    ),
    "POST /leaks/reclaim/": case(
        {"blocks": [{"id": "{lost}", "holder": apis.holder("lost")["holder"]}], "reason": "gone"}
    ),
    "POST /references/": case(REPORT),
    "POST /clusters/": case({"name": "new"}),
    "PATCH /clusters/{cluster}/": case({"description": "x"}),
    "DELETE /clusters/{cluster}/": case(cluster="empty"),
    "PATCH /pools/{pool_id}/cidrs/{cidr_id}/": case({"owner": "x"}, pool_id="spare"),
    "GET /pools/{pool_id}/cidrs/{cidr_id}/": case(pool_id="spare"),
    "PATCH /blocks/{block_id}/": case({"dns_name": "web.example.org"}),
    "GET /dns/zone-file/": case(query="?zone=example.org&ns=ns.example.org"),
    "POST /custom-fields/": case(
        {"name": "new", "label": "New", "type": "text", "object_types": ["pool"]}
    ),
    "PATCH /custom-fields/{custom_field_id}/": case({"label": "x"}),
    "POST /containers/": case({"cidr": "10.128.0.0/12"}),
    "GET /containers/{container_id}/available-prefixes/": case(query="?prefix_length=20"),
    "POST /containers/{container_id}/next-prefix/": case(
        {"prefix_length": 20, "purpose": "container"}
    ),
    "PATCH /containers/{container_id}/": case({"description": "x"}),
    "POST /environments/": case({"cluster": "prod", "env": "new"}),
    "PATCH /environments/{environment_id}/": case({"description": "x"}),
    "DELETE /environments/{environment_id}/": case(environment_id="declared"),
    "POST /journal/": case({"object_type": "network", "object_id": "{network_id}", "text": "x"}),
    "POST /journal/ (cluster)": case(
        {"object_type": "cluster", "object_id": "{cluster_id}", "text": "x"}
    ),
    "PUT /clusters/{cluster}/connection/": case(
        {"kubeconfig": KUBECONFIG, "offline": True}, cluster="empty"
    ),
    "PATCH /clusters/{cluster}/connection/": case({"paused": True}),
    "POST /clusters/{cluster}/connection/test/": case({}),
    "POST /clusters/{cluster}/connection/test/ (kubeconfig)": case({"kubeconfig": KUBECONFIG}),
    "POST /clusters/{cluster}/pool-for-pod/": case(
        {"pod": {"name": "p"}, "namespace": {"name": "n"}}
    ),
    "POST /clusters/{cluster}/node-demand/": case({"in_use": {"default": 1}}),
    "POST /clusters/{cluster}/drift/{drift_id}/{decision}/": case({"reason": "known"}),
    "GET /clusters/{cluster}/drift/{drift_id}/ownership/": case(status=409),
    "POST /clusters/{cluster}/drift/{drift_id}/ownership/": case(
        {"token": "t", "reason": "known"}, status=409
    ),
    "PATCH /clusters/{cluster}/network-settings/": case({"annotation": "addresses"}),
    "PATCH /alerts/{alert_id}/": case({"acknowledged": True, "acknowledged_reason": "known"}),
    "POST /silences/": case(
        {"code": "cluster_stale", "until": "2099-01-01T00:00:00Z", "reason": "known"}
    ),
    "POST /webhook-targets/": case({"name": "n", "url": "https://example.org/"}),
    "PATCH /webhook-targets/{target_id}/": case({"enabled": False}),
    "DELETE /clusters/{cluster}/ (force)": case(query="?force=true&reason=gone", cluster="empty"),
    "POST /clusters/{cluster}/drift/{drift_id}/{decision}/ (adopt)": case(
        status=404, decision="adopt"
    ),
    "GET /utilization/ (by env)": case(query="?by=env"),
    # VM networks
    "POST /imports/": case({"cluster": "prod", "namespace": "alpha", "rows": [VM_ROW]}),
    "POST /netbox-sources/": case(
        {"name": "two", "url": "https://netbox.example", "token": "x", "cluster": "prod"}
    ),
    "PATCH /netbox-sources/{netbox_source_id}/": case({"every_minutes": 60}),
    "GET /netbox-export/{kind}.csv": case(kind="exported"),
    "POST /imports/ (register)": case(
        {"kind": "register", "cluster": "prod", "text": "prefix\n10.72.0.0/24\n"}
    ),
    "GET /imports/{import_id}/ (register)": case(import_id="drafted_register"),
    "PATCH /imports/{import_id}/ (register)": case(
        {"mapping": {"vrf": {"blue": "edge"}}}, import_id="drafted_register"
    ),
    "GET /imports/{import_id}/rows/ (register)": case(import_id="drafted_register"),
    "GET /imports/{import_id}/rows/{number}/ (register)": case(import_id="drafted_register"),
    "PATCH /imports/{import_id}/rows/{number}/ (register)": case(
        {"skip": True}, import_id="drafted_register"
    ),
    "POST /imports/{import_id}/check/ (register)": case(import_id="drafted_register"),
    "POST /imports/{import_id}/commit/ (register)": case(import_id="drafted_register"),
    "POST /imports/{import_id}/undo/ (register)": case(import_id="committed_register"),
    "POST /imports/{import_id}/cancel/ (register)": case(import_id="drafted_register"),
    "POST /imports/{import_id}/release/": case({}, import_id="committed_register"),
    "POST /imports/{import_id}/keep/": case({}, import_id="committed_register"),
    "PATCH /imports/{import_id}/": case({"namespace": "alpha"}),
    "PATCH /imports/{import_id}/rows/{number}/": case({"skip": True}),
    "POST /imports/{import_id}/undo/": case(import_id="written"),
    "GET /imports/{import_id}/manifest/": case(import_id="written"),
    "POST /ipamclaims/": case(CLAIM),
    "PATCH /ipamclaims/{claim_id}/": case({"note": "x"}),
    "POST /ipamclaims/{claim_id}/release/": case({"reason": "gone"}, status=409),
    "POST /networks/{network_id}/vm-manifest/": case({"vm": "web-0", "namespace": "alpha"}),
    "GET /networks/{network_id}/addresses-for-mac/": case(query="?mac=02:aa:aa:aa:aa:00"),
    "POST /ippools/": case({"cluster": "prod", "name": "fresh", "network_name": "bare-net"}),
    "PATCH /ippools/{ippool_id}/": case({"note": "x"}),
    "POST /ippools/{ippool_id}/entries/": case(ENTRY),
    "PUT /ippools/{ippool_id}/entries/": case({"entries": []}),
    "PATCH /ippools/{ippool_id}/entries/{entry_id}/": case({"note": "x"}),
    "POST /memberships/": case({"user": "somebody", "cluster": "prod", "namespaces": ["x"]}),
    "PATCH /memberships/{membership_id}/": case({"namespaces": ["alpha", "beta"]}),
    "POST /networks/": case(NETWORK),
    "PATCH /networks/{network_id}/": case({"description": "x"}),
    "DELETE /networks/{network_id}/": case(network_id="bare_network"),
    "POST /networks/{network_id}/workloads/adopt/": case({"result": "unknown", "reason": "found"}),
    "POST /waves/": case({"cluster": "prod", "name": "Sunday"}),
    "PATCH /waves/{wave_id}/": case({"note": "x"}),
    "POST /waves/{wave_id}/vms/": case({"vms": [{"namespace": "alpha", "vm": "web-1"}]}),
}
# Pages that are asked about a row by the query, or in an address whose parameters belong together.
PAGES: dict[str, Case] = {
    "/admin/autocomplete/": case(query="?app_label=claims&model_name=entry&field_name=ippool"),
    "/admin/pools/pool/{object_id}/migrations/{migration_id}/": case(object_id="pods"),
    # Of who has no second factor.
    "/admin/second-factor/totp/deactivate/": case(status=404),
    "/admin/second-factor/recovery-codes/": case(status=404),
    "/admin/second-factor/recovery-codes/download/": case(status=404),
    "/admin/pools/alert/acknowledge/": case(query="?id={alert_id}"),
    "/admin/pools/block/release/": case(query="?id={block_id}"),
    "/admin/pools/block/end-cooldown/": case(query="?id={cooling}"),
    "/admin/pools/cluster/bulk-edit/": case(query="?id={cluster_id}"),
    "/admin/pools/poolcidr/bulk-edit/": case(query="?id={cidr_id}"),
    "/admin/pools/pool/bulk-edit/": case(query="?id={pool_id}"),
    "/admin/pools/container/bulk-edit/": case(query="?id={container_id}"),
    "/admin/pools/environment/bulk-edit/": case(query="?id={declared}"),
    "/admin/claims/network/bulk-edit/": case(query="?id={network_id}"),
    "/admin/claims/entry/bulk-edit/": case(query="?id={entry_id}"),
    "/admin/claims/entry/bulk-delete/": case(query="?id={entry_id}"),
    "/admin/pools/drift/settle/": case(query="?verb=ignore&id={drift_id}"),
    "/admin/pools/leak/reclaim/": case(query="?id={lost}"),
    "/admin/claims/workload/adopt/": case(query="?network={network_id}&result=unknown"),
    "/admin/claims/workload/export/": case(query="?network={network_id}"),
    "/admin/claims/workload/export/{form}/": case(query="?network={network_id}"),
}


def request(
    world: Everything, address: answers.Address, method: str, word: str = ""
) -> tuple[str, Case]:
    """(path with query, what is asked there)"""
    route = address.route
    if route.startswith("/api/v1/"):
        key = f"{method} {route.removeprefix('/api/v1')}"
        chosen = API.get(f"{key} ({word})" if word else key, Case())
    else:
        chosen = PAGES.get(route, Case())
    values = [_value(world, route, name, chosen) for name in address.names]
    body = chosen.body and json.loads(
        re.sub(r'"{(\w+)}"', lambda name: str(world.values[name[1]]), json.dumps(chosen.body))
    )
    query = chosen.query.format(**world.values)
    return address.filled(*values) + query, replace(chosen, body=body)


def _value(world: Everything, route: str, name: str, chosen: Case) -> Any:
    """In the admin the first parameter of a table's page is a row of the table."""
    _, site, app, model, *rest = [*route.split("/"), "", ""]
    row = world.rows.get(f"{app}.{model}")
    if name in chosen.use:
        return world.values[chosen.use[name]]
    if site == "admin" and row is not None and f"{{{name}}}" in rest[:1]:
        return row
    return world.values[name]
