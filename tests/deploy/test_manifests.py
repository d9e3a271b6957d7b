"""What is shipped: manifests, compose files and the list of parts."""

import json
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
from typing import Any

import pytest
import yaml

import ipam_site
from ipam_site import database_url
from ipam_site.http import health, metrics
from tests.deploy import shipped
from tests.deploy.helm import chart, program

# The kustomizations and the chart agree with the code, with compose and with the supervisor
#
# The chart's default objects are those of the kustomizations (tests/deploy/helm): here are its other examples.
CHART_EXAMPLES = ("everything", "external-tls", "openshift-reencrypt")


@pytest.fixture(scope="module", params=(*shipped.OVERLAYS, *CHART_EXAMPLES))
def manifests(request: pytest.FixtureRequest) -> list[shipped.Manifest]:
    if request.param in CHART_EXAMPLES:
        helm = program.require_programs()[-1]
        return chart.installed(chart.render(helm, request.param))
    return shipped.built(request.param)


@pytest.mark.sample(6)
def test_each_process_is_started_as_the_supervisor_starts_it(
    manifests: list[shipped.Manifest],
) -> None:
    pods = shipped.pods(manifests)
    for name, (arguments, role) in shipped.supervised().items():
        container = shipped.container(pods[name])
        # The image's entry point is `python -m`, as the supervisor's.
        assert "command" not in container
        assert container["args"] == arguments, name
        assert shipped.environment(container, manifests)["IPAM_ROLE"] == role, name
    assert set(pods) - set(shipped.supervised()) <= {"migrate", "webhooks"}


def test_every_variable_is_one_that_the_code_reads(manifests: list[shipped.Manifest]) -> None:
    code = "".join(
        path.read_text() for path in pathlib.Path(ipam_site.__file__).parent.rglob("*.py")
    )
    variables = set(re.findall(r"""env\.\w+\(\s*f?["']([A-Z_]+)["']""", code))
    variables |= {f"{name}_FILE" for name in re.findall(r'env\.secret\(\s*"([A-Z_]+)"', code)}
    variables |= {"WEB_TLS_CERT", "WEB_TLS_KEY", "WEB_TLS_CLIENT_CA"} | shipped.FOREIGN
    for pod in shipped.pods(manifests).values():
        for container in (*pod.get("initContainers", []), *pod["containers"]):
            assert set(shipped.environment(container, manifests)) <= variables


def test_all_run_one_image_of_this_version(manifests: list[shipped.Manifest]) -> None:
    images = {
        container["image"]
        for pod in shipped.pods(manifests).values()
        for container in (*pod.get("initContainers", []), *pod["containers"])
    }
    (image,) = images
    assert "@sha256:" in image or image.rpartition(":")[2] == ipam_site.__version__


def test_probes_ask_what_there_is(
    manifests: list[shipped.Manifest], monkeypatch: pytest.MonkeyPatch, rf: Any
) -> None:
    answers = health.HealthMiddleware(lambda _: pytest.fail("no probe"))
    monkeypatch.setattr(health, "readiness", lambda: {"status": "ok", "checks": {}})
    for name in ("web", "webhooks"):
        if name not in shipped.pods(manifests):
            continue
        container = shipped.container(shipped.pods(manifests)[name])
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        bind = shipped.environment(container, manifests).get("WEB_BIND", ":8000")
        assert bind.startswith(":")  # pods may have addresses of one family only
        assert ports == {next(iter(ports)): int(bind.rpartition(":")[2])}
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            http_get = container[probe]["httpGet"]
            assert http_get["port"] in ports
            speaks_tls = "WEB_TLS_CERT" in shipped.environment(container, manifests)
            assert (http_get.get("scheme") == "HTTPS") == speaks_tls
            assert answers(rf.get(http_get["path"])).status_code == 200
        # Liveness asks nobody else: a database that is away restarts nothing.
        assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"
        assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"


def test_a_stop_has_the_time_it_needs(manifests: list[shipped.Manifest]) -> None:
    for name, pod in shipped.pods(manifests).items():
        container = shipped.container(pod)
        observed = shipped.environment(container, manifests)
        needed = 0
        if "lifecycle" in container:
            drain = container["lifecycle"]["preStop"]["exec"]["command"][-1]
            seconds = re.fullmatch(r"touch /run/cadastre/draining; sleep (\d+)", drain)
            assert seconds, drain
            # A probe must have seen it before the server stops listening.
            readiness = container["readinessProbe"]
            assert int(seconds[1]) > readiness["periodSeconds"]
            needed = int(seconds[1]) + 25  # WEB_GRACEFUL_SECONDS
        if name in {"worker", "reconciler"}:
            assert observed["REMAP_SIGTERM"] == "SIGQUIT"  # or Celery waits for the tasks' end
            needed = int(observed["WORKER_SOFT_SHUTDOWN_SECONDS"]) + 10
        assert pod.get("terminationGracePeriodSeconds", 30) > needed, name


def test_services_budgets_and_policies_select_pods_that_there_are(
    manifests: list[shipped.Manifest],
) -> None:
    labels = [
        item["spec"]["template"]["metadata"]["labels"]
        for item in shipped.select(manifests, "Deployment", "Job").values()
    ]

    def matched(selector: dict[str, str]) -> bool:
        return any(selector.items() <= label.items() for label in labels)

    for name, manifest in shipped.select(
        manifests, "Service", "PodDisruptionBudget", "NetworkPolicy"
    ).items():
        spec = manifest["spec"]
        selector = spec.get("podSelector", spec.get("selector"))
        assert matched(
            selector if manifest["kind"] == "Service" else selector.get("matchLabels", {})
        ), name
    for name, manifest in shipped.select(manifests, "Deployment").items():
        template = manifest["spec"]["template"]
        match_labels = manifest["spec"]["selector"]["matchLabels"]
        assert match_labels.items() <= template["metadata"]["labels"].items(), name
        for spread in template["spec"]["topologySpreadConstraints"]:
            assert spread["labelSelector"]["matchLabels"] == match_labels


def test_nothing_is_open_that_no_policy_opens(manifests: list[shipped.Manifest]) -> None:
    policies = shipped.select(manifests, "NetworkPolicy")
    deny = policies["cadastre-default-deny"]["spec"]
    assert deny["policyTypes"] == ["Ingress", "Egress"]
    # All pods of the namespace, or all of the release.
    denied = deny.pop("podSelector").get("matchLabels", {})
    for item in shipped.select(manifests, "Deployment", "Job").values():
        assert denied.items() <= item["spec"]["template"]["metadata"]["labels"].items()
    assert list(deny) == ["policyTypes"]
    out = {
        port["port"]
        for name, policy in policies.items()
        if name != "cadastre-extra"
        for rule in policy["spec"].get("egress", [])
        for port in rule["ports"]  # a rule without ports would open them all
    }
    (name_server,) = out - {5432, 6379, 443, 6443}
    assert name_server in {53, 5353}  # 5353 is OpenShift's


def test_the_secret_has_what_the_settings_name(manifests: list[shipped.Manifest]) -> None:
    expected = {"DATABASE_URL", "REDIS_URL", "SECRET_KEY", "IPAM_KEY_RING"}
    for pod in shipped.pods(manifests).values():
        settings = shipped.environment(shipped.container(pod), manifests)
        files = {
            key: value
            for key, value in settings.items()
            if key.endswith("_FILE") and key != "IPAM_METRICS_TOKEN_FILE"
        }
        assert files == {f"{name}_FILE": f"/etc/cadastre/secrets/{name}" for name in expected}
    for item in shipped.select(manifests, "Secret").values():
        assert item["type"] == "kubernetes.io/service-account-token"
        assert not {"data", "stringData"} & set(item)


@pytest.mark.exhaustive
def test_prometheus_is_told_the_same_alerts_and_may_ask() -> None:
    manifests = shipped.built("overlays/example")
    rules = yaml.safe_load((shipped.DEPLOY / "prometheus" / "cadastre.rules.yaml").read_text())
    (rule,) = shipped.select(manifests, "PrometheusRule").values()
    assert rule["spec"]["groups"] == rules["groups"], "run `make prometheus-rule`"
    (monitor,) = shipped.select(manifests, "ServiceMonitor").values()
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint["path"] == metrics.PATH
    web = shipped.container(shipped.pods(manifests)["web"])
    assert endpoint["port"] in {port["name"] for port in web["ports"]}
    labels = shipped.select(manifests, "Service")["cadastre-web"]["metadata"]["labels"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= labels.items()
    # What is presented is what the web processes take.
    credentials = endpoint["authorization"]["credentials"]
    mounted = shipped.environment(web, manifests)["IPAM_METRICS_TOKEN_FILE"]
    assert mounted == f"/etc/cadastre/secrets/{credentials['key']}"
    (secret,) = (
        volume["secret"]["secretName"]
        for volume in shipped.pods(manifests)["web"]["volumes"]
        if volume["name"] == "secrets"
    )
    assert credentials["name"] == secret


# --- compose.yaml: the same processes as the supervisor's, confined, with secrets in files --------
FILE = shipped.compose()
SERVICES = FILE["services"]
OURS = {name: service for name, service in SERVICES.items() if name not in {"postgres", "redis"}}


def test_compose_starts_each_process_as_the_supervisor_does() -> None:
    for name, (arguments, role) in shipped.supervised().items():
        assert OURS[name]["command"] == arguments, name
        assert OURS[name]["environment"]["IPAM_ROLE"] == role, name
    assert set(OURS) - set(shipped.supervised()) == {"migrate"}


def test_all_of_compose_run_one_image_of_this_version() -> None:
    (image,) = {item["image"] for item in OURS.values()}
    assert image == f"${{CADASTRE_IMAGE:-cadastre:{ipam_site.__version__}}}"
    for name in ("postgres", "redis"):
        assert re.fullmatch(r"docker\.io/library/\w+:\d+\.\d+(\.\d+)?-\w+", SERVICES[name]["image"])


def test_nobody_listens_outside_but_the_site() -> None:
    assert [name for name, service in SERVICES.items() if "ports" in service] == ["web"]
    assert FILE["networks"]["inside"] == {"internal": True}
    for name in ("postgres", "redis", "migrate"):
        assert SERVICES[name]["networks"] == ["inside"]


@pytest.mark.parametrize("name", OURS)
def test_a_process_is_confined(name: str) -> None:
    service = OURS[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert {tmpf.partition(":")[0] for tmpf in service["tmpfs"]} == {"/tmp", "/run/cadastre"}


def test_secrets_are_files() -> None:
    mounted = {name for service in SERVICES.values() for name in service.get("secrets", [])}
    assert mounted == set(FILE["secrets"])
    for item in OURS.values():
        for key, value in item["environment"].items():
            if key.endswith("_FILE"):
                assert value.removeprefix("/run/secrets/") in item["secrets"]
            assert not re.search("URL$|KEY$|RING$|PASSWORD", key), "a secret in the environment"


def test_a_stop_of_compose_has_the_time_it_needs() -> None:
    for name in ("worker", "reconciler"):
        assert OURS[name]["environment"]["REMAP_SIGTERM"] == "SIGQUIT"
        assert int(OURS[name]["stop_grace_period"].rstrip("s")) > 20 + 10
    assert int(OURS["web"]["stop_grace_period"].rstrip("s")) > 25


def test_the_script_makes_every_secret_once(tmp_path: pathlib.Path) -> None:
    script = shutil.copy(shipped.DEPLOY / "compose" / "secrets.sh", tmp_path)
    created = []
    for _ in range(2):
        subprocess.run([script], check=True, capture_output=True)
        created.append({item.name: item.read_text() for item in (tmp_path / "secrets").iterdir()})
    assert created[0] == created[1]
    names = {pathlib.Path(item["file"]).name for item in FILE["secrets"].values()}
    assert names <= set(created[0])
    assert stat.S_IMODE(os.stat(tmp_path / "secrets").st_mode) == 0o700
    assert all(content.count("\n") <= 1 and content.strip() for content in created[0].values())
    entry = database_url.parse_url(created[0]["database_url"].strip())
    assert entry["PASSWORD"] == created[0]["postgres_password"].strip()
    assert created[0]["redis.conf"].split()[1] in created[0]["redis_url"]


def test_processes_wait_for_the_schema() -> None:
    for name, service in OURS.items():
        for item in service["depends_on"]:
            assert item in SERVICES, name
    assert OURS["web"]["depends_on"]["migrate"]["condition"] == "service_completed_successfully"


# ---  ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("more", [(), ("requirements-ldap.lock",)])
def test_the_bill_of_materials_lists_what_is_locked(more: tuple[str, ...]) -> None:
    folder = shipped.DEPLOY / "container"
    texts = {
        subprocess.run(
            [sys.executable, folder / "sbom.py", *more], capture_output=True, check=True
        ).stdout
        for _ in range(2)
    }
    (text,) = texts  # the same each time
    bill = json.loads(text)
    lock = "".join((folder / name).read_text() for name in ("requirements.lock", *more))
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert bill["metadata"]["component"]["version"] == ipam_site.__version__
    pins = re.findall(r"^([\w.-]+)==([^\s\\]+)", lock, re.MULTILINE)
    assert [(component["name"], component["version"]) for component in bill["components"]] == pins
    hashes = [
        item
        for component in bill["components"]
        for item in component["externalReferences"][0]["hashes"]
    ]
    assert len(hashes) == lock.count("--hash=sha256:")
    references = {component["bom-ref"] for component in bill["components"]}
    assert set(bill["dependencies"][0]["dependsOn"]) == references
    assert len(references) == len(pins)
