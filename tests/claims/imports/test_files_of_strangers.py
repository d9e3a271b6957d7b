"""Files as other tools and people write them, tried as a stranger would: what they say is read, named, or stays in use."""

import json
from typing import Any

import pytest

from claims.entries import entries
from claims.imports import drafts as import_drafts
from claims.models import Entry, Network
from pools.core import errors
from pools.models import ReservedRange
from pools.platform import documents
from tests.claims import worlds
from tests.claims.imports import corpus, drafts
from tests.claims.imports.drafts import mac, row
from tests.claims.worlds import BY
from tests.kube.manifests import build

MAC = corpus.mac(1)
WEB = ("web", MAC, ("10.0.0.1",), "blue")  # as each of these files says


def said(content: str | bytes) -> list[tuple[Any, ...]]:
    return [(line.vm, line.mac, line.ips, line.port_group) for line in corpus.read(content)[1]]


HEADERS = [
    "VM-Name;Netzwerk;MAC-Adresse;IP-Adresse",
    "Servername;Portgruppe;MAC-Adresse;IPv4-Adresse",
    "Nom de la VM;Réseau;Adresse MAC;Adresses IPv4",
    "Machine;Réseau;MAC;Adresse IP",
    "Máquina virtual;Red;Dirección MAC;Direcciones IP",
    "Nombre;Red;Dirección MAC;Dirección IP",
    "Guest name;Network label;HW addr;IP address(es)",
    "Hostname;Port Group;MAC Address;IP",
]


@pytest.mark.parametrize("header", HEADERS)
def test_columns_in_the_words_of_their_country(header: str) -> None:
    reading, _ = corpus.read(f"{header}\nweb;blue;{MAC};10.0.0.1\n")
    assert (said(f"{header}\nweb;blue;{MAC};10.0.0.1\n"), reading.notes) == ([WEB], ())


def test_vnetwork_before_version_4_has_one_column_of_addresses() -> None:
    header = "VM,Adapter,Network,Switch,Connected,Mac Address,Direct Path IO,IP Address"
    assert said(f"{header}\nweb,E1000,blue,dvs,True,{MAC},False,10.0.0.1\n") == [WEB]


MACS = [f"{MAC} (vmxnet3)", f"'{MAC}'", f"[{MAC}]", f"{MAC}, ", f"• {MAC}", f'="{MAC}"']


@pytest.mark.parametrize("cell", MACS)
def test_what_stands_around_a_mac(cell: str) -> None:
    quoted = cell.replace('"', '""')
    assert said(f'VM,MAC,IP,Network\nweb,"{quoted}",10.0.0.1,blue\n') == [WEB]


def virtual_machine(**interface: Any) -> dict[str, Any]:
    domain = {"devices": {"interfaces": [{"name": "net-0", "bridge": {}} | interface]}}
    networks = [{"name": "net-0", "multus": {"networkName": "blue"}}]
    annotations = {"network.kubevirt.io/addresses": '{"net-0": ["10.0.0.1"]}'}
    spec = {"domain": domain, "networks": networks}
    template = {"metadata": {"annotations": annotations}, "spec": spec}
    return build("", "VirtualMachine", "web", "shop", spec={"template": template})


def instance(vm: dict[str, Any]) -> dict[str, Any]:
    status = {"interfaces": [{"name": "net-0", "mac": MAC, "ipAddresses": ["10.0.0.1"]}]}
    spec = vm["spec"]["template"]["spec"]
    return build("", "VirtualMachineInstance", "web", "shop", spec=spec, status=status)


def govc_vm() -> dict[str, Any]:
    """A VM as `govc vm.info -json` prints it: the switch's name is the guest's, the device has its id."""
    port = {"portgroupKey": "dvportgroup-31", "portKey": "7"}
    guest_nic = {"network": "blue", "macAddress": MAC, "deviceConfigId": 4000}
    devices = [
        {"key": 200, "deviceInfo": {"label": "IDE 0"}},
        {"key": 4000, "macAddress": MAC, "backing": {"port": port}},
    ]
    return {
        "name": "web",
        "runtime": {"powerState": "poweredOn"},
        "config": {"template": False, "hardware": {"device": devices}},
        "guest": {"ipAddress": "10.0.0.1", "net": [guest_nic | {"ipAddress": ["10.0.0.1"]}]},
    }


def with_capitals(value: Any) -> Any:
    if isinstance(value, dict):
        return {name[0].upper() + name[1:]: with_capitals(item) for name, item in value.items()}
    return [with_capitals(item) for item in value] if isinstance(value, list) else value


def ansible_vm() -> dict[str, Any]:
    """A VM as vmware_vm_info registers it: its only port group is in the summary of another module."""
    addresses = {MAC: {"ipv4": ["10.0.0.1"], "ipv6": []}}
    names = {"guest_name": "web", "power_state": "poweredOn", "ip_address": "10.0.0.1"}
    return {**names, "mac_address": [MAC], "vm_network": addresses}


def ansible_guest() -> dict[str, Any]:
    """A VM as vmware_guest_info and vm_info register it, which have its interfaces by number."""
    nic = {"macaddress": MAC, "ipaddresses": ["10.0.0.1"], "portgroup_key": None, "summary": "blue"}
    power = {"hw_power_status": "poweredOn", "hw_is_template": False}
    return {**power, "hw_name": "web", "hw_interfaces": ["eth0"], "hw_eth0": nic, "ipv4": None}


def ovirt_vm(devices_at: str) -> dict[str, Any]:
    """A VM of oVirt's REST API, whose guest's devices are at the VM or at its NIC."""
    ips = {"ip": [{"address": "10.0.0.1", "version": "v4"}]}
    devices = {"reported_device": [{"name": "eth0", "mac": {"address": MAC}, "ips": ips}]}
    nic: dict[str, Any] = {"name": "nic1", "mac": {"address": MAC}, "network": {"name": "blue"}}
    vm: dict[str, Any] = {"name": "web", "status": "up", "nics": {"nic": [nic]}}
    (vm if devices_at == "vm" else nic)["reported_devices"] = devices
    return vm


DOCUMENTS: dict[str, Any] = {
    "govc": {"virtualMachines": [govc_vm()]},
    "older govc": with_capitals({"virtualMachines": [govc_vm()]}),
    "oVirt, devices at the VM": {"vm": [ovirt_vm("vm")]},
    "oVirt, devices at its NIC": {"vm": [ovirt_vm("nic")]},
    "Ansible": {"changed": False, "failed": False, "instance": ansible_guest()},
    "Ansible, a loop": {"changed": False, "results": [{"item": "web", "instance": ansible_guest()}]},
    "Ansible, under two names": {"changed": False, "guests": [ansible_guest()], "vms": [ansible_guest()]},
    "a VM of KubeVirt": virtual_machine(macAddress=MAC),
    "its instance": instance(virtual_machine()),
    "both in a list": {"kind": "List", "items": [virtual_machine(), instance(virtual_machine())]},
    "PowerShell": [{"VM": "web", "NetworkName": "blue", "MacAddress": MAC, "IPAddress": ["10.0.0.1"]}],
    "PowerShell, one object": {"Parent": {"Name": "web"}, "NetworkName": "blue", "MAC": MAC, "IP": "10.0.0.1"},
    "ports of OpenStack": [
        {"Name": "web", "MAC Address": MAC, "Fixed IP Addresses": [{"ip_address": "10.0.0.1"}], "Network": "blue"}
    ],
}  # fmt: skip


@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
def test_documents(document: Any) -> None:
    assert said(json.dumps(document)) == [WEB]
    assert not any(line.problems for line in corpus.read(json.dumps(document))[1])


YAML = [name for name in DOCUMENTS if name.startswith("Ansible")]


@pytest.mark.parametrize("document", [DOCUMENTS[name] for name in YAML], ids=YAML)
def test_yaml_of_another_tool(document: Any) -> None:
    assert said(documents.dump_yaml(document)) == [WEB]


@pytest.mark.parametrize("write", [json.dumps, documents.dump_yaml])
def test_addresses_of_ansible_stay_those_of_their_mac(write: Any) -> None:
    networks = {
        mac(2): {"ipv4": ["10.0.0.2"], "ipv6": ["2001:db8::2"]},
        MAC: {"ipv4": [], "ipv6": []},
    }
    vm = ansible_vm() | {"mac_address": [MAC, mac(2)], "vm_network": networks}
    rows = [("web", MAC, (), ""), ("web", mac(2), ("10.0.0.2", "2001:db8::2"), "")]
    assert said(write([vm])) == said(write({"virtual_machines": [vm], "changed": False})) == rows


def test_the_inventory_of_mtv_may_be_yaml() -> None:
    text = json.dumps([corpus.vsphere_vm(1), corpus.vsphere_vm(2)])
    assert said(documents.dump_yaml(json.loads(text))) == said(text) != []


def test_a_title_with_a_colon_is_no_yaml() -> None:
    assert said(f"VMs:\nVM;MAC;IP;Network\nweb;{MAC};10.0.0.1;blue\n") == [WEB]


def test_a_vm_of_vcenters_rest_api_has_no_addresses() -> None:
    nics = {"4000": {"mac_address": MAC, "backing": {"network_name": "blue"}}}
    assert corpus.refused(json.dumps({"name": "web", "nics": nics})) == "unsupported_document"


@pytest.mark.parametrize("ip", ["0.0.0.0", "::"])  # noqa: S104
def test_an_interface_without_an_address_may_report_the_unspecified_one(ip: str) -> None:
    (line,) = corpus.read(f"VM,MAC,IP\nweb,{MAC},{ip}\n")[1]
    assert (line.ips, line.refused) == ((), False)
    assert [problem.code for problem in line.problems] == ["unspecified_set_aside", "no_address"]


def test_a_vm_of_another_tool_that_is_no_object_is_a_refused_row() -> None:
    _, (web, other) = corpus.read(json.dumps({"vm": [ovirt_vm("vm"), "db"]}))
    assert (web.refused, other.refused, other.problems[0].code) == (False, True, "wrong_type")


def test_the_configuration_that_a_guest_reports_to_vsphere_has_prefix_lengths_and_origins() -> None:
    vm = govc_vm()
    configured = {"ipAddress": "10.0.0.1", "prefixLength": 24, "origin": "dhcp"}
    vm["guest"]["net"][0]["ipConfig"] = {"ipAddress": [configured]}
    vm["guest"]["guestId"] = "windows2019srv_64Guest"
    _, (row,) = corpus.read(json.dumps({"virtualMachines": [vm]}))
    assert (row.ips, row.origins) == (("10.0.0.1/24",), ("dhcp",))
    assert "not_preserved" in [problem.code for problem in row.problems]


def test_a_vm_of_govc_that_does_not_run_keeps_the_network_of_its_device() -> None:
    vm = govc_vm() | {"guest": {}, "runtime": {"powerState": "poweredOff"}}
    _, (row,) = corpus.read(json.dumps({"virtualMachines": [vm]}))
    assert (row.mac, row.ips, row.port_group) == (MAC, (), "dvportgroup-31")
    assert "powered_off" in [problem.code for problem in row.problems]


def test_what_is_not_read_of_json_is_named() -> None:
    reading, _ = corpus.read(json.dumps([{"VM": "web", "MAC": MAC, "IP": "10.0.0.1", "Owner": 7}]))
    assert [note.message for note in reading.notes] == ["columns that are not read: Owner"]


def test_a_name_that_only_later_objects_of_json_have_is_a_column() -> None:
    web = {"VM": "web", "MAC": MAC, "IP": "10.0.0.1", "Network": "blue"}
    rows = json.dumps([{"VM": "db", "MAC": mac(2)}, web])
    assert said(rows) == [("db", mac(2), (), ""), WEB]


def test_addresses_of_openstacks_list_of_servers_stay_those_of_the_server() -> None:
    document = [{"name": "web", "addresses": {"blue": ["10.0.0.1"]}}]
    assert said(json.dumps(document)) == [("web", "", ("10.0.0.1",), "blue")]


def test_a_list_may_have_a_row_for_each_address_of_an_interface() -> None:
    text = f"VM,MAC,IP\nweb,{MAC},10.0.0.1\ndb,{mac(2)},10.0.0.2\nweb,{MAC},2001:db8::1\n"
    assert said(text)[0] == ("web", MAC, ("10.0.0.1", "2001:db8::1"), "")
    assert len(said(text)) == 2


def test_a_vm_whose_interfaces_only_the_guest_knows_keeps_its_addresses() -> None:
    assert said(json.dumps([corpus.vsphere_vm(1, nics=[])]))[0][1:3] == ("", ("10.0.0.1",))


# --- what stays in use -----------------------------------------------------------------------------


@pytest.fixture
def network() -> Network:
    return worlds.network(subnets=("10.0.0.0/28",))


def withheld(on: Network, content: bytes, **options: Any) -> list[str]:
    """Return the addresses that nobody gets after all but the bad rows of a file are imported."""
    draft = drafts.of_file(on, content, **options)
    free = draft.rows.get(texts__vm="new")
    import_drafts.assign_free_addresses(draft.pk, free.number, author=BY)
    given = draft.rows.get(pk=free.pk).ips[0].partition("/")[0]
    import_drafts.IMPORTS.commit(draft.pk, skip_bad=True, author=BY)
    ranges = ReservedRange.objects.filter(pool=on.pool).order_by("first")
    addresses = [str(reserved.first) for reserved in ranges]
    assert given not in addresses
    return addresses


def rvtools(*nics: dict[str, object], vinfo: Any = ()) -> bytes:
    """A workbook; its last VM is to get the next free address."""
    last = corpus.nic(99, VM="new", **{"IPv4 Address": "", "IPv6 Address": ""})
    primary = [[name, "poweredOn", "", "", "", ip] for name, ip in vinfo]
    return corpus.to_xlsx({"vInfo": [corpus.VINFO, *primary], "vNetwork": corpus.rows(*nics, last)})


def test_the_address_that_a_file_has_of_the_vm_only(network: Network) -> None:
    """RVTools without running tools; two vCenters may have VMs of one name."""
    nic = corpus.nic(1, VM="web", **{"IPv4 Address": "", "IPv6 Address": ""})
    vinfo = [("web", "10.0.0.3"), ("web", "10.0.0.4"), ("alone", "10.0.0.5")]
    assert withheld(network, rvtools(nic, vinfo=vinfo)) == ["10.0.0.3", "10.0.0.4", "10.0.0.5"]


def test_addresses_of_which_nobody_knows_the_interface(network: Network) -> None:
    macs = f"{mac(1)}, {mac(2)}"
    nic = corpus.nic(1, **{"Mac Address": macs, "IPv4 Address": "10.0.0.3, 10.0.0.4, 10.0.0.5"})
    nic["IPv6 Address"] = ""
    assert withheld(network, rvtools(nic)) == ["10.0.0.3", "10.0.0.4", "10.0.0.5"]


def test_rows_of_a_port_group_that_nobody_mapped(network: Network) -> None:
    nics = [corpus.nic(1, Network="other", **{"IPv4 Address": "10.0.0.3", "IPv6 Address": ""})]
    mapped = {"network": None, "mapping": {"vlan100-prod": network.pk}}
    assert withheld(network, rvtools(*nics), **mapped) == ["10.0.0.3"]


def test_an_undo_names_what_was_changed(network: Network) -> None:
    of = drafts.draft(network, row("web", mac(1), "10.0.0.3"), row("", mac(2), "10.0.0.4"))
    import_drafts.IMPORTS.commit(of.pk, author=BY)
    for entry in Entry.objects.all():
        spec = entries.EntrySpec(entry.mac or "", (*entry.ips,), entry.vm, entry.namespace, "moved")
        entries.change(entry.pk, spec, author=BY)
    expected = f"the entry of web was changed since; row 2: the entry of {mac(2)} was changed since"
    with pytest.raises(errors.ImportInUse, match=expected):
        import_drafts.IMPORTS.undo(of.pk, author=BY)


def test_odd_values_of_ansible_are_no_error() -> None:
    odd = {"guest_name": "a", "mac_address": 5, "vm_network": {MAC: {"ipv4": 5}}}
    assert [line[0] for line in said(json.dumps([odd]))] == ["a"]
    flat = {"guest_name": "web", "mac_address": MAC, "ip_address": "10.0.0.1"}  # of a table
    assert [line[:3] for line in said(json.dumps([flat]))] == [WEB[:3]]
