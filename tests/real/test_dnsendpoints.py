"""The documented `kubectl apply` of DNSEndpoints, with the CRD of ExternalDNS: objects of names that ended go."""

import json
import pathlib
import re
import shlex
from collections.abc import Callable
from ipaddress import ip_address
from typing import Any

from pools.core import dns_names
from tests.kube.real import RealCluster

PAGE = pathlib.Path("docs/reference/dns-names.md")
WEB = dns_names.Record("web.example.org", ip_address("10.0.0.1"))
WEB_V6 = dns_names.Record("web.example.org", ip_address("2001:db8::1"))
LONG = dns_names.Record(".".join(["a" * 63] * 3 + ["b" * 61]), ip_address("10.0.0.2"))


def _manifests(*records: dns_names.Record) -> dict[str, Any]:
    manifests: dict[str, Any] = json.loads(
        "".join(dns_names.endpoint_lines(records, namespace="dns"))
    )
    return manifests


def test_the_documented_command_removes_what_ended(
    kube: RealCluster, kubectl: Callable[..., str]
) -> None:
    kube.anew("externaldns.k8s.io_dnsendpoints")
    kubectl("create", "namespace", "dns")
    (command,) = re.findall(r"\| kubectl (apply .*--prune.*)", PAGE.read_text())
    apply = shlex.split(command)
    kubectl(*apply, manifest=_manifests(LONG, WEB, WEB_V6))
    stored = kube.object("dnsendpoints.externaldns.k8s.io", "web.example.org", "dns")
    (of_web,) = _manifests(WEB, WEB_V6)["items"]
    assert stored["spec"] == of_web["spec"]
    kubectl(*apply, manifest=_manifests(WEB))
    names = [row["metadata"]["name"] for row in kube.objects("dnsendpoints.externaldns.k8s.io")]
    assert names == ["web.example.org"]
