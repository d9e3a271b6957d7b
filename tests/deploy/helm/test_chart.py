"""What the chart adds to the kustomization: values, hooks, secrets by reference, copies of files."""

import ast
import json
import pathlib
import re
from typing import Any

import pytest
import yaml

import ipam_site
from tests.deploy import shipped
from tests.deploy.helm import chart

VALUES = yaml.safe_load((chart.CHART / "values.yaml").read_text())
SCHEMA = json.loads((chart.CHART / "values.schema.json").read_text())


def _paths(value: Any, path: str = "") -> set[str]:
    """The paths of a tree's leaves; lists and empty maps are leaves."""
    if not isinstance(value, dict) or not value:
        return {path}
    return {item for key in value for item in _paths(value[key], f"{path}.{key}".lstrip("."))}


def _schema_at(path: str) -> Any:
    """The schema of a value: None if the schema does not name it."""
    result: Any = SCHEMA
    for key in path.split("."):
        while "$ref" in result:
            result = SCHEMA["definitions"][result["$ref"].rpartition("/")[2]]
        if "properties" not in result:
            return result
        result = result["properties"].get(key)
        if result is None:
            return None
    return result


def test_it_is_of_this_version() -> None:
    described = yaml.safe_load((chart.CHART / "Chart.yaml").read_text())
    assert described["appVersion"] == described["version"] == ipam_site.__version__


@pytest.mark.parametrize(
    ("copy", "original"),
    [
        ("cadastre.rules.yaml", "prometheus/cadastre.rules.yaml"),
        ("cluster-role-observe.yaml", "kubernetes/cluster-role-observe.yaml"),
        ("cluster-role-manage.yaml", "kubernetes/cluster-role-manage.yaml"),
    ],
)
def test_its_files_are_copies(copy: str, original: str) -> None:
    copied = (chart.CHART / "files" / copy).read_text()
    assert copied == (shipped.DEPLOY / original).read_text(), "run `make chart`"


def test_helm_finds_no_fault(helm: str) -> None:
    for example in chart.EXAMPLES:
        options = chart.values_options(example)
        completed = chart.run_helm(helm, "lint", "--strict", str(chart.CHART), *options)
        assert completed.returncode == 0, completed.stdout


def test_the_schema_names_every_value() -> None:
    assert not [path for path in _paths(VALUES) if _schema_at(path) is None]


def test_the_schema_is_strict() -> None:
    """Nothing but Kubernetes' own objects takes unknown keys."""

    def objects(schema: Any, path: str) -> list[str]:
        loose = []
        if schema.get("type") == "object" and "additionalProperties" not in schema:
            loose.append(path)
        for key in ("properties", "definitions"):
            for name, item in schema.get(key, {}).items():
                loose += objects(item, f".{name}")
        return loose

    # `global` is Helm's, for charts that contain this one.
    assert set(objects(SCHEMA, "")) == {".global", ".free"}


def test_the_readme_lists_every_value() -> None:
    readme = (chart.CHART / "README.md").read_text().partition("## Values")[2]
    listed = set(re.findall(r"^\| `([\w.]+)`", readme, re.MULTILINE))
    like_web = ("worker", "reconciler", "watcher", "beat", "webhooks")
    documented = {path.partition(".")[2] for path in listed if path.startswith(("web.", "worker."))}
    for path in _paths(VALUES):
        parents = {path.rsplit(".", depth)[0] for depth in range(path.count(".") + 1)}
        process, _, rest = path.partition(".")
        shared = {rest.rsplit(".", depth)[0] for depth in range(rest.count(".") + 1)}
        assert parents & listed or (process in like_web and shared & documented), path
    assert not [path for path in listed if _schema_at(path) is None]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"web": {"replica": 3}}, r"/?web.*replica.*not allowed"),
        ({"web": {"replicas": "3"}}, r"web.replicas.*(integer|string)"),
        ({"host": "https://ipam.example.com"}, r"host.*not match"),
        ({"image": {"digest": "latest"}}, r"image.digest.*not match"),
        ({"settings": {"SECRET_KEY": "a value"}}, r"SECRET_KEY|settings"),
        ({"settings": {"IPAM_HTTPS": 1}}, r"settings.IPAM_HTTPS.*string"),
        ({"beat": {"replicas": 3}}, r"beat.replicas.*2"),
        ({"clusterAccess": {"role": "admin"}}, r"clusterAccess.role.*(observe|one of)"),
        ({"networkPolicies": {"dns": {"port": 70000}}}, r"networkPolicies.dns.port.*65,?535"),
        ({"route": {"termination": "none"}}, r"route.termination.*(edge|one of)"),
        ({"web": None}, r"web. is required|missing property .web|web is required"),
        ({"secrets": {"keyRing": None}}, r"keyRing is required|missing property .keyRing"),
        (
            {"commonLabels": {"app.kubernetes.io/name": "ipam"}},
            r"commonLabels.*(not.failed|\(not\))|not. failed",
        ),
        ({"monitoring": {"serviceMonitor": {"interval": "half a minute"}}}, r"interval.*match"),
        ({"secrets": {"existingSecret": ""}}, "secrets.databaseUrl.name or secrets.existingSecret"),
        (
            {"secrets": {"generateKeys": True}},
            r"secrets\.generateKeys works only where Helm reads the cluster",
        ),
        ({"serviceAccount": {"create": False}}, r"serviceAccount\.name is needed"),
        (
            {"route": {"enabled": True, "termination": "passthrough"}},
            r"passthrough are for web\.tls\.enabled=true",
        ),
        (
            {
                "ingress": {
                    "enabled": True,
                    "tls": {
                        "secretName": "",
                        "certManager": {"enabled": True, "issuerRef": {"name": "x"}},
                    },
                }
            },
            r"ingress\.tls\.certManager needs ingress\.tls\.secretName",
        ),
        ({"web": {"replicas": None}}, r"replicas is required|missing property .replicas"),
        ({"web": {"tls": {"secretName": ""}}}, r"web\.tls\.secretName"),
        (
            {"web": {"autoscaling": {"enabled": True, "minReplicas": 9}}},
            r"web\.autoscaling\.minReplicas is more than web\.autoscaling\.maxReplicas",
        ),
        # A file of another version: a value that was renamed or that is gone.
        ({"web": {"replicaCount": 3}}, r"replicaCount.*not allowed"),
        ({"postgresql": {"enabled": True}}, r"postgresql.*not allowed"),
        (
            {"ingress": {"tls": {"certManager": {"enabled": True}}}},
            r"issuerRef.*name|missing.*name",
        ),
    ],
    ids=lambda value: re.sub(r"\W+", " ", str(value)) if isinstance(value, dict) else "",
)
def test_wrong_values_are_refused(
    helm: str, tmp_path: pathlib.Path, values: shipped.Manifest, message: str
) -> None:
    refused = chart.template(helm, chart.path_of_values(tmp_path, values))
    assert refused.returncode == 1
    assert re.search(message, refused.stderr.replace("/", ".")), refused.stderr


def test_a_key_with_nothing_below_it_is_as_good_as_none(helm: str, tmp_path: pathlib.Path) -> None:
    names = ("annotations", "labels", "nodeSelector", "tolerations", "extraVolumes")
    empty: shipped.Manifest = dict.fromkeys([*names, "extraVolumeMounts"])
    values = {
        "pods": empty | {"extraEnv": None, "extraEnvFrom": None},
        "web": empty | {"env": None},
        "webhooks": empty | {"extraHosts": None, "env": None},
        "migrations": {"annotations": None, "env": None},
        "serviceAccount": {"annotations": None},
        **dict.fromkeys(["extraHosts", "commonLabels", "commonAnnotations", "imagePullSecrets"]),
    }
    webhooks = "--set=webhooks.enabled=true"
    completed = chart.template(helm, webhooks, chart.path_of_values(tmp_path, values))
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout == chart.template(helm, webhooks).stdout


@pytest.mark.parametrize(
    ("options", "budget"),
    [
        ([], {"minAvailable": 1}),
        (["--set=web.replicas=1"], {"maxUnavailable": 1}),
        (["--set=web.autoscaling.enabled=true,web.replicas=1"], {"minAvailable": 1}),
        (
            ["--set=web.autoscaling.enabled=true,web.autoscaling.minReplicas=1"],
            {"maxUnavailable": 1},
        ),
    ],
    ids=str,
)
def test_a_single_pod_does_not_hold_up_a_drained_node(
    helm: str, options: list[str], budget: shipped.Manifest
) -> None:
    (spec,) = (
        manifest["spec"]
        for manifest in chart.render(helm, "default", *options)
        if manifest["kind"] == "PodDisruptionBudget"
        and manifest["metadata"]["name"].endswith("-web")
    )
    del spec["selector"], spec["unhealthyPodEvictionPolicy"]
    assert spec == budget


def test_secrets_are_named_and_never_contained(helm: str, tmp_path: pathlib.Path) -> None:
    values = {
        "secrets": {
            "existingSecret": "",
            **{
                name: {"name": f"store-{name.lower()}", "key": "value"}
                for name in ("databaseUrl", "redisUrl", "secretKey", "keyRing", "metricsToken")
            },
        },
        "monitoring": {"enabled": True},
    }
    option = chart.path_of_values(tmp_path, values)
    manifests = chart.render(helm, "default", option)
    assert not shipped.select(manifests, "Secret")
    for pod in shipped.pods(manifests).values():
        (volume,) = (
            volume["projected"] for volume in pod["volumes"] if volume["name"] == "secrets"
        )
        assert volume["defaultMode"] == 0o440
        files = {
            source["secret"]["items"][0]["path"]: source["secret"]["name"]
            for source in volume["sources"]
        }
        assert files == {
            "DATABASE_URL": "store-databaseurl",
            "REDIS_URL": "store-redisurl",
            "SECRET_KEY": "store-secretkey",
            "IPAM_KEY_RING": "store-keyring",
            "IPAM_METRICS_TOKEN": "store-metricstoken",
        }
    (monitor,) = shipped.select(manifests, "ServiceMonitor").values()
    (endpoint,) = monitor["spec"]["endpoints"]
    credentials = endpoint["authorization"]["credentials"]
    assert credentials == {"name": "store-metricstoken", "key": "value"}


def test_some_secrets_replace_those_of_the_existing_one(helm: str) -> None:
    (volume,) = (
        volume["projected"]
        for volume in shipped.pods(chart.render(helm, "everything"))["web"]["volumes"]
        if volume["name"] == "secrets"
    )
    assert volume["sources"] == [
        {"secret": {"name": "cadastre"}},
        {"secret": {"name": "cadastre-pg-app", "items": [{"key": "uri", "path": "DATABASE_URL"}]}},
        {"secret": {"name": "cadastre-redis", "items": [{"key": "url", "path": "REDIS_URL"}]}},
    ]


def test_hooks_run_in_the_order_of_their_needs(helm: str) -> None:
    """What the migration's pod names exists before it: its weight is lower, or it is no object of the chart."""
    manifests = chart.render(helm, "everything")
    job = shipped.select(manifests, "Job")["cadastre-migrate"]
    pod = job["spec"]["template"]["spec"]

    def weight(manifest: shipped.Manifest) -> int:
        return int(manifest["metadata"]["annotations"]["helm.sh/hook-weight"])

    needed = {("ServiceAccount", pod["serviceAccountName"])}
    needed |= {
        ("ConfigMap", source["configMapRef"]["name"])
        for source in pod["containers"][0]["envFrom"]
        if not source["configMapRef"].get("optional")
    }
    assert len(needed) == 2
    for kind, name in needed:
        early = shipped.select(manifests, kind)[name]
        assert set(chart.hooks(early)) >= set(chart.hooks(job))
        assert weight(early) < weight(job)
    # One that failed last time does not stand in the way of the next.
    policies = job["metadata"]["annotations"]["helm.sh/hook-delete-policy"]
    assert "before-hook-creation" in policies.split(",")


def test_a_changed_setting_reaches_every_pod(helm: str) -> None:
    checksums = []
    for level in ("INFO", "DEBUG"):
        manifests = chart.render(helm, "default", f"--set=settings.LOG_LEVEL={level}")
        checksums.append(
            {
                name: manifest["spec"]["template"]["metadata"]["annotations"]["checksum/settings"]
                for name, manifest in shipped.select(manifests, "Deployment").items()
            }
        )
    before, after = checksums
    assert len(before) == 5
    assert all(before[name] != after[name] for name in before)


def test_an_account_that_exists_is_used(helm: str) -> None:
    options = ("--set=serviceAccount.create=false", "--set=serviceAccount.name=shared")
    manifests = chart.render(helm, "default", *options)
    assert not shipped.select(manifests, "ServiceAccount")
    assert {pod["serviceAccountName"] for pod in shipped.pods(manifests).values()} == {"shared"}


def test_the_roles_are_those_of_deploy_kubernetes(helm: str) -> None:
    optional = list(
        yaml.safe_load_all((shipped.DEPLOY / "kubernetes/role-cilium-config.yaml").read_text())
    )
    for role in ("observe", "manage"):
        options = ("--set=clusterAccess.enabled=true", f"--set=clusterAccess.role={role}")
        manifests = chart.render(helm, "default", *options)
        text = (shipped.DEPLOY / "kubernetes" / f"cluster-role-{role}.yaml").read_text()
        for expected in (yaml.safe_load(text), *optional):
            kind, name = expected["kind"], expected["metadata"]["name"]
            rendered = shipped.select(manifests, kind)[name]
            for key in {"rules", "subjects", "roleRef"} & set(expected):
                assert rendered[key] == expected[key]
        bound = shipped.select(manifests, "ClusterRoleBinding")[f"cadastre-{role}"]
        assert bound["roleRef"]["name"] == f"cadastre-{role}"
    assert "rbac" not in chart.rendered_text(helm), "no rights by default"


def test_on_openshift_ids_are_left_to_it(helm: str) -> None:
    manifests = chart.render(helm, "openshift")
    for pod in shipped.pods(manifests).values():
        assert not {"runAsUser", "runAsGroup", "fsGroup"} & set(pod["securityContext"])
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in (*pod["containers"], *pod.get("initContainers", [])):
            context = container["securityContext"]
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert context["readOnlyRootFilesystem"]
            assert not context["allowPrivilegeEscalation"]
        # What restricted-v2 allows.
        for volume in pod["volumes"]:
            assert {"secret", "emptyDir", "projected", "configMap"} & set(volume)


def test_runbooks_are_where_the_values_say(helm: str) -> None:
    text = chart.rendered_text(helm, *chart.values_options("everything"))
    urls = set(re.findall(r"runbook_url: (\S+)/Ipam", text))
    assert urls == {"https://runbooks.example.com/cadastre"}


def test_the_test_pod_may_do_what_it_does(helm: str) -> None:
    manifests = chart.render(helm, "external-tls")
    tests = [manifest for manifest in manifests if "test" in chart.hooks(manifest)]
    (pod,) = shipped.select(tests, "Pod").values()
    (container,) = pod["spec"]["containers"]
    *command, script, url, host = container["command"]
    assert command == ["python", "-c"]
    ast.parse(script)
    assert (url, host) == ("https://cadastre-web.cadastre.svc:443", "ipam.example.com")
    assert "volumeMounts" not in container
    labels = pod["metadata"]["labels"].items()
    policies = shipped.select(tests, "NetworkPolicy")
    (rule,) = policies["cadastre-test"]["spec"]["ingress"]
    assert rule["from"][0]["podSelector"]["matchLabels"].items() <= labels
    assert policies["cadastre-test-egress"]["spec"]["podSelector"]["matchLabels"].items() <= labels
