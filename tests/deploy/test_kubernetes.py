"""The manifests: valid as written and as kustomize builds them, locked down, and with our settings."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from our_commands import DEPLOY, kafka_of, settings_of

KUBERNETES = DEPLOY / "kubernetes"
OVERLAYS = ("base", "overlays/gpu", "overlays/secure")
COMMANDS = {"learner": "learn", "scorer": "score", "evaluator": "evaluate", "topics": "topics"}
OLDEST = "1.29"

Document = dict[str, Any]


def build(folder: str) -> list[Document]:
    """What `kubectl apply -k` would send."""
    for program in (["kustomize", "build"], ["kubectl", "kustomize"]):
        if shutil.which(program[0]) is not None:
            built = subprocess.run([*program, str(KUBERNETES / folder)], capture_output=True, text=True)
            assert built.returncode == 0, built.stderr
            return [document for document in yaml.safe_load_all(built.stdout) if document]
    pytest.skip("neither kustomize nor kubectl here; the base's manifests are checked anyway")


def base_manifests() -> list[Document]:
    files = sorted((KUBERNETES / "base").glob("*.yaml"))
    documents = [d for file in files for d in yaml.safe_load_all(file.read_text())]
    return [document for document in documents if document["kind"] != "Kustomization"]


def validate(documents: list[Document]) -> None:
    checker = pytest.importorskip(
        "kubernetes_validate", reason="no Kubernetes schemas: pip install kubernetes-validate"
    )
    for version in (OLDEST, checker.latest_version()):
        for document in documents:
            checker.validate(document, version, strict=True)


def pods(documents: list[Document]) -> dict[str, Document]:
    return {
        document["metadata"]["name"].removeprefix("cgzsl-"): document["spec"]["template"]["spec"]
        for document in documents
        if document["kind"] in ("Deployment", "Job")
    }


def environment(documents: list[Document], container: Document) -> dict[str, str]:
    """The container's variables; one from a secret has the secret's name as its value."""
    maps = {d["metadata"]["name"]: d["data"] for d in documents if d["kind"] == "ConfigMap"}
    found = {k: v for source in container.get("envFrom", ()) for k, v in maps[source["configMapRef"]["name"]].items()}
    for variable in container.get("env", ()):
        found[variable["name"]] = variable.get("value") or variable["valueFrom"]["secretKeyRef"]["name"]
    return found


def test_the_base_is_valid_as_written() -> None:
    documents = base_manifests()
    assert {document["kind"] for document in documents} == {
        *("ServiceAccount", "Deployment", "Job", "PodDisruptionBudget", "NetworkPolicy")
    }
    validate(documents)


@pytest.mark.parametrize("folder", OVERLAYS)
def test_what_is_built_is_valid(folder: str) -> None:
    validate(build(folder))


@pytest.mark.parametrize("folder", OVERLAYS)
def test_every_command_and_variable_is_ours(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    documents = build(folder)
    commands = {}
    for name, pod in pods(documents).items():
        [container] = pod["containers"]
        settings = settings_of(container["args"], environment(documents, container), monkeypatch)
        commands[name] = container["args"][0]
        if name != "topics":
            [port] = container["ports"]
            assert (settings.host, settings.port, port["name"]) == ("0.0.0.0", port["containerPort"], "pages")
            assert (settings.attributes, settings.features) == (312, 2048)
    assert commands == COMMANDS


def test_the_secure_overlay_has_tls_and_one_user_per_worker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    documents = build("overlays/secure")
    users = {}
    for name, pod in pods(documents).items():
        [container] = pod["containers"]
        variables = environment(documents, container)
        mounted = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
        secrets = {v["name"]: v["secret"]["secretName"] for v in pod["volumes"] if "secret" in v}
        files = {}
        for variable, content in (("CGZSL_KAFKA_PASSWORD_FILE", "s3cret"), ("CGZSL_KAFKA_CA", None)):
            path = Path(variables[variable])
            assert mounted[str(path.parent)] in secrets
            files[str(path)] = str(tmp_path / path.name)
            (tmp_path / path.name).write_text(content or _certificate())
        settings = settings_of(container["args"], variables, monkeypatch)
        kafka = kafka_of(settings, variables, files)
        assert (kafka.security, kafka.admin()["sasl_mechanism"]) == ("SASL_SSL", "SCRAM-SHA-512")
        assert kafka.admin()["sasl_plain_password"] == "s3cret"
        users[name] = kafka.admin()["sasl_plain_username"]
        assert secrets[mounted["/etc/cgzsl/user"]] == users[name]
    assert users == {
        "learner": "cgzsl-learner",
        "scorer": "cgzsl-scorer",
        "evaluator": "cgzsl-evaluator",
        "topics": "cgzsl-operator",
    }


def _certificate() -> str:
    """A certificate that this machine trusts."""
    import ssl

    bundle = ssl.get_default_verify_paths().cafile or ssl.get_default_verify_paths().openssl_cafile
    if not Path(bundle).is_file():
        pytest.skip("no certificates on this machine")
    return Path(bundle).read_text()


def test_no_manifest_contains_a_secret() -> None:
    text = "".join(path.read_text() for path in KUBERNETES.rglob("*.yaml"))
    assert "kind: Secret" not in text
    assert "CGZSL_KAFKA_PASSWORD=" not in text and "name: CGZSL_KAFKA_PASSWORD\n" not in text


@pytest.mark.parametrize("folder", OVERLAYS)
def test_no_pod_can_do_more_than_it_must(folder: str) -> None:
    for name, pod in pods(build(folder)).items():
        assert pod["automountServiceAccountToken"] is False, name
        assert pod["securityContext"]["runAsNonRoot"] is True, name
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }, name
            assert {"requests", "limits"} <= set(container["resources"]), name
            assert container["image"].partition(":")[2], name


def test_workers_are_probed_on_their_pages() -> None:
    paths = {"startupProbe": "/healthz", "livenessProbe": "/healthz", "readinessProbe": "/readyz"}
    for name, pod in pods(base_manifests()).items():
        [container] = pod["containers"]
        if name == "topics":
            continue
        assert {probe: container[probe]["httpGet"]["path"] for probe in paths} == paths
        assert {container[probe]["httpGet"]["port"] for probe in paths} == {"pages"}


def test_the_gpu_is_for_the_learner_alone() -> None:
    containers = {name: pod["containers"][0] for name, pod in pods(build("overlays/gpu")).items()}
    images = {name: container["image"] for name, container in containers.items()}
    assert images == {**dict.fromkeys(COMMANDS, "stream-cgzsl:0.1.0"), "learner": "stream-cgzsl:0.1.0-cuda"}
    assert [name for name, c in containers.items() if "nvidia.com/gpu" in c["resources"]["limits"]] == ["learner"]


def test_budgets_and_spreading_select_pods_that_exist() -> None:
    documents = build("base")
    labels = [d["spec"]["template"]["metadata"]["labels"] for d in documents if d["kind"] == "Deployment"]
    selectors = [d["spec"]["selector"]["matchLabels"] for d in documents if d["kind"] == "PodDisruptionBudget"]
    assert len(selectors) == 2
    for selector in selectors:
        assert [of for of in labels if selector.items() <= of.items()] and selector["cgzsl/stream"] == "cgzsl"


def test_prometheus_can_read_the_scrape_configuration(promtool: str, tmp_path: Path) -> None:
    """Without the Kubernetes service discovery, which some builds of Prometheus do not have."""
    document = yaml.safe_load((KUBERNETES / "scrape.yml").read_text())
    [job] = document["scrape_configs"]
    assert job.pop("kubernetes_sd_configs") == [{"role": "pod"}]
    assert "stream" in {rule.get("target_label") for rule in job["relabel_configs"]}
    file = tmp_path / "prometheus.yml"
    file.write_text(yaml.safe_dump(document))
    checked = subprocess.run([promtool, "check", "config", str(file)], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr + checked.stdout
