"""Values and names of the chart."""

import json
import pathlib
import re
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
import yaml

from tests.deploy import shipped
from tests.deploy.helm import chart

# Any value that a file sets to null or to something empty works or is refused by the schema;
# texts stay texts
#
# A null in a file removes the default: Helm leaves the key out before it validates and renders.
Path = tuple[str, ...]
VALUES = yaml.safe_load((chart.CHART / "values.yaml").read_text())
_SCHEMA = jsonschema_rs.validator_for(json.loads((chart.CHART / "values.schema.json").read_text()))
# Everything is rendered: what is off by default, and in the Route and the Ingress.
_BASE = [
    *chart.values_options("everything"),
    "--set=web.tls.enabled=true,route.enabled=true,route.termination=reencrypt",
]
# What may be left out, beside texts that are empty by default and values of Kubernetes' own kind.
_OPTIONAL = {
    "annotations", "autoscaling", "behavior", "className", "disruptionBudget", "failureThreshold", "ipFamilyPolicy",
    "livenessProbe", "maxUnavailable", "minAvailable", "periodSeconds", "podSecurityContext", "readinessProbe",
    "resources", "securityContext", "settings", "startupProbe", "timeoutSeconds", "topologySpreadConstraints",
}  # fmt: skip
_KUBERNETES_OWN = re.compile(
    r"(.*\.)?(resources|behavior|annotations|podSecurityContext|securityContext|settings)\..*"
)

# The templates refuse them empty, depending on other values (test_wrong_values_are_refused).
_NEEDED_WITH_OTHERS = (("secrets", "existingSecret"), ("ingress", "tls", "secretName"))


def _paths(values: dict[str, Any], path: Path = ()) -> Iterator[tuple[Path, Any]]:
    for key, value in values.items():
        yield (*path, key), value
        if isinstance(value, dict):
            yield from _paths(value, (*path, key))


def _nested(path: Path, value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def _merged(defaults: Any, values: Any) -> Any:
    """The values as Helm has them: maps are merged, and null removes."""
    if not isinstance(defaults, dict) or not isinstance(values, dict):
        return values
    merged = dict(defaults)
    for key, value in values.items():
        merged[key] = _merged(merged.get(key), value)
    return {key: value for key, value in merged.items() if value is not None}


def _is_accepted(path: Path, value: Any) -> bool:
    return bool(_SCHEMA.is_valid(_merged(VALUES, _nested(path, value))))


def _render(helm: str, folder: pathlib.Path, values: Any, *options: str) -> list[Any]:
    rendered = chart.template(helm, *_BASE, *options, chart.path_of_values(folder, values))
    assert rendered.returncode == 0, (values, rendered.stderr)
    assert "<nil>" not in rendered.stdout, values
    assert "%!" not in rendered.stdout, values
    return [manifest for manifest in yaml.safe_load_all(rendered.stdout) if manifest]


def test_what_has_a_meaning_only_with_a_value_is_required() -> None:
    for path, default in _paths(VALUES):
        name = ".".join(path)
        if _KUBERNETES_OWN.fullmatch(name):
            continue
        is_optional = default in ("", [], {}) or path[-1] in _OPTIONAL
        assert _is_accepted(path, None) is is_optional, name


@pytest.mark.parametrize("empty", [None, "", [], {}], ids=["null", "text", "list", "map"])
def test_what_the_schema_accepts_is_rendered(helm: str, tmp_path: pathlib.Path, empty: Any) -> None:
    """All values at once, and then all maps that the schema lets be empty."""
    accepted = {
        path: default
        for path, default in _paths(VALUES)
        if not _KUBERNETES_OWN.fullmatch(".".join(path)) and _is_accepted(path, empty)
    }
    for path in _NEEDED_WITH_OTHERS:
        accepted.pop(path, None)
    assert len(accepted) > 20
    for is_map in (False, True):
        values: Any = {}
        for path, default in accepted.items():
            if (isinstance(default, dict) and default != {}) is is_map:
                values = _merged_keeping_null(values, _nested(path, empty))
        _render(helm, tmp_path, values)


def _merged_keeping_null(first: Any, second: Any) -> Any:
    if not isinstance(first, dict) or not isinstance(second, dict):
        return second
    both = {**first, **second}
    return both | {key: _merged_keeping_null(first[key], second[key]) for key in first.keys() & second.keys()}  # fmt: skip


def test_a_probe_is_left_out(helm: str, tmp_path: pathlib.Path) -> None:
    values = {
        "web": {"startupProbe": None},
        "worker": {"livenessProbe": {"periodSeconds": None, "timeoutSeconds": 7}},
    }
    pods = shipped.pods(_render(helm, tmp_path, values))
    (web,), (worker,) = pods["web"]["containers"], pods["worker"]["containers"]
    assert "startupProbe" not in web
    assert web["readinessProbe"]["httpGet"]["path"] == "/readyz"
    probe = worker["livenessProbe"]
    assert {name: probe[name] for name in probe if name != "exec"} == {
        "timeoutSeconds": 7, "failureThreshold": 3,
    }  # fmt: skip


@pytest.mark.parametrize("where", ["dns.to", "postgresql.to", "redis.to", "clusters.to", "web.from", "metrics.from"])  # fmt: skip
def test_a_network_policy_for_nobody_is_refused(
    helm: str, tmp_path: pathlib.Path, where: str
) -> None:
    """To Kubernetes an empty list of peers is everybody."""
    for peers in ([], [{}]):
        values = {"networkPolicies": _nested(tuple(where.split(".")), peers)}
        refused = chart.template(helm, chart.path_of_values(tmp_path, values))
        assert refused.returncode == 1
        assert "values don't meet the specifications of the schema" in refused.stderr


def test_texts_of_digits_stay_texts(helm: str, tmp_path: pathlib.Path) -> None:
    """Names of releases, namespaces, Secrets and the like may be numbers, or look like floats."""
    texts = {
        "fullnameOverride": "NAME", "nameOverride": "NAME", "host": "NAME", "extraHosts": ["NAME"],
        "image": {"repository": "NAME", "tag": "NAME", "digest": ""}, "imagePullSecrets": [{"name": "NAME"}],
        "secrets": {
            "existingSecret": "NAME", "databaseUrl": {"name": "NAME", "key": "NAME"},
            "metricsToken": {"name": "NAME", "key": "NAME"},
        },
        "settings": {"LOG_LEVEL": "NAME"},
        "serviceAccount": {"name": "NAME", "annotations": {"a": "NAME"}},
        "pods": {"labels": {"a": "NAME"}, "annotations": {"a": "NAME"}, "priorityClassName": "NAME", "nodeSelector": {"a": "NAME"}},
        "web": {"tls": {"secretName": "NAME"}, "priorityClassName": "NAME", "service": {"annotations": {"a": "NAME"}}},
        "webhooks": {"extraHosts": ["NAME"], "certificate": {"secretName": "NAME"}},
        "ingress": {"className": "NAME", "tls": {"secretName": "NAME"}},
        "route": {"certificateSecretName": "NAME"},
        "commonLabels": {"a": "NAME"}, "commonAnnotations": {"a": "NAME"},
    }  # fmt: skip
    kinds = []
    for text in ("letters", "1234567"):
        values = json.loads(json.dumps(texts).replace("NAME", text))
        completed = chart.run_helm(
            helm, "template", text, str(chart.CHART), f"--namespace={text}", *_BASE,
            chart.path_of_values(tmp_path, values),
        )  # fmt: skip
        assert completed.returncode == 0, completed.stderr
        manifests = list(filter(None, yaml.safe_load_all(completed.stdout)))
        kinds.append([(path, type(leaf)) for path, leaf in _leaves(manifests)])
    assert len(kinds[0]) > 1000
    assert kinds[0] == kinds[1]


def _leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, dict):
        for key in sorted(value):
            yield from _leaves(value[key], (*path, key))
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item, path)
    else:
        yield path, value


def test_large_numbers_of_a_file_stay_whole(helm: str, tmp_path: pathlib.Path) -> None:
    million = 1_000_000
    values = {
        "migrations": dict.fromkeys(
            ("activeDeadlineSeconds", "ttlSecondsAfterFinished", "lockTimeoutMs"), million
        ),
        "web": {"drainSeconds": million, "terminationGracePeriodSeconds": million},
        "worker": {"softShutdownSeconds": million},
        "podSecurityContext": {"runAsUser": 1_000_650_000},
    }
    manifests = _render(helm, tmp_path, values)
    job = shipped.select(manifests, "Job")["cadastre-migrate"]["spec"]
    assert (job["activeDeadlineSeconds"], job["ttlSecondsAfterFinished"]) == (million, million)
    variables = {
        item["name"]: item["value"]
        for pod in shipped.pods(manifests).values()
        for container in pod["containers"]
        for item in container["env"]
    }
    assert variables["LOCK_TIMEOUT_MS"] == variables["WORKER_SOFT_SHUTDOWN_SECONDS"] == str(million)
    web = shipped.pods(manifests)["web"]
    assert web["terminationGracePeriodSeconds"] == million
    assert web["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][-1].endswith("sleep 1000000")  # fmt: skip
    assert web["securityContext"]["runAsUser"] == 1_000_650_000


def test_a_setting_that_the_chart_makes_is_refused(helm: str, tmp_path: pathlib.Path) -> None:
    """It would be there twice, or have no effect."""
    manifests = _render(helm, tmp_path, {"pods": {"extraEnv": []}, "web": {"env": []}})
    created = set(shipped.select(manifests, "ConfigMap")["cadastre"]["data"]) - set(
        VALUES["settings"]
    )
    for pod in shipped.pods(manifests).values():
        for container in (*pod["containers"], *pod.get("initContainers", [])):
            created |= {variable["name"] for variable in container["env"]}
    assert {"SECRET_KEY_FILE", "WEB_WORKERS", "IPAM_ROLE"} <= created
    created.remove("LOCK_TIMEOUT_MS")  # the migration's own; other pods have that of the settings
    assert not {name for name in created if _is_accepted(("settings", name), "x")}


# --- Names of any release are names of Kubernetes; what is no name of a host or an image is
# refused
_LABEL = re.compile("[a-z]([-a-z0-9]{0,61}[a-z0-9])?")  # RFC 1035, as names of Services have to be
_LABEL_VALUE = re.compile("([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")


@pytest.mark.parametrize(
    ("release", "values"),
    [
        ("2026-ipam", {}),
        ("7", {}),
        ("ipam.prod", {}),
        ("9.cadastre.test", {}),
        ("r" * 53, {}),
        ("r" * 36 + "---" + "r" * 14, {}),
        ("r" * 39 + ".r", {}),
        ("r", {"nameOverride": "4.2"}),
        ("r", {"nameOverride": "n" * 39 + ".n" * 12}),
        ("r", {"nameOverride": "n" * 63}),
        ("r", {"fullnameOverride": "0.f"}),
        ("r", {"fullnameOverride": "f" * 63}),
        ("r", {"fullnameOverride": "f" * 38 + "-.-f"}),
    ],
)
def test_names_of_any_release_are_names_of_kubernetes(
    helm: str, tmp_path: pathlib.Path, release: str, values: dict[str, Any]
) -> None:
    completed = chart.run_helm(
        helm, "template", release, str(chart.CHART), "--namespace=x",
        *chart.values_options("everything"), chart.path_of_values(tmp_path, values),
    )  # fmt: skip
    assert completed.returncode == 0, completed.stderr
    manifests = [item for item in yaml.safe_load_all(completed.stdout) if item]
    for manifest in manifests:
        metadata = manifest["metadata"]
        if not metadata["name"].startswith("system:"):
            assert _LABEL.fullmatch(metadata["name"]), metadata["name"]
        for value in metadata.get("labels", {}).values():
            assert _LABEL_VALUE.fullmatch(value), metadata["labels"]
    assert len(shipped.select(manifests, "Service")) >= 2


@pytest.mark.parametrize(
    ("values", "is_accepted"),
    [
        ({"host": "ipam.example.com"}, True),
        ({"host": "10.0.0.5"}, True),
        ({"host": "Ipam.example.com"}, False),  # of which an Ingress takes no notice: it is refused
        ({"host": "ipam..example.com"}, False),
        ({"host": "ipam.example.com."}, False),
        ({"host": "-ipam.example.com"}, False),
        ({"host": "ipam.example.com:8443"}, False),
        ({"host": "*.example.com"}, False),
        ({"extraHosts": ["a", "b.c"]}, True),
        ({"extraHosts": ["a/b"]}, False),
        ({"image": {"repository": "registry.example.com:5000/team/cadastre"}}, True),
        ({"image": {"repository": "registry.example.com/cadastre:1.2"}}, False),
        ({"image": {"repository": "cadastre@sha256"}}, False),
        ({"image": {"repository": " "}}, False),
        ({"image": {"repository": "registry.example.com/"}}, False),
        ({"image": {"tag": "1.2_3-rc.1"}}, True),
        ({"image": {"tag": "-1"}}, False),
        ({"image": {"tag": "1/2"}}, False),
        ({"nameOverride": "Ipam"}, False),
        ({"fullnameOverride": "ipam-"}, False),
    ],
    ids=str,
)
def test_what_is_no_name_is_refused(
    helm: str, tmp_path: pathlib.Path, values: dict[str, Any], is_accepted: bool
) -> None:
    completed = chart.template(helm, chart.path_of_values(tmp_path, values))
    assert (completed.returncode == 0) is is_accepted, completed.stderr
    if not is_accepted:
        assert "match" in completed.stderr


def test_a_digest_counts_and_not_the_tag(helm: str, tmp_path: pathlib.Path) -> None:
    digest = "sha256:" + "0" * 64
    values = {"image": {"repository": "r:5000/cadastre", "tag": "9", "digest": digest}}
    completed = chart.template(helm, chart.path_of_values(tmp_path, values))
    pods = shipped.pods([item for item in yaml.safe_load_all(completed.stdout) if item])
    containers = [
        container
        for pod in pods.values()
        for container in (*pod["containers"], *pod.get("initContainers", []))
    ]
    assert {container["image"] for container in containers} == {f"r:5000/cadastre@{digest}"}


def test_every_version_of_kubernetes_gets_the_same(helm: str) -> None:
    """1.27 is the oldest one that the chart is for; the newest is that of tomorrow."""
    rendered = {
        chart.rendered_text(helm, *chart.values_options("everything"), f"--kube-version={version}")
        for version in ("1.27.0", "1.30.3-gke.1", "1.99.0")
    }
    assert len(rendered) == 1
    refused = chart.template(helm, "--kube-version=1.26.15")
    assert refused.returncode == 1
    assert "incompatible with Kubernetes v1.26.15" in refused.stderr
