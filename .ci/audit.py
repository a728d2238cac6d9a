"""Known vulnerabilities of what is installed here, by pip-audit; says plainly when they could not be looked up.

Exit codes: 0 looked up and none known, 1 some are known, 2 they could not be looked up.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

SERVICES = ("pypi", "osv")
PATIENCE_SECONDS = 120


def main() -> int:
    for service in SERVICES:
        document, why_not = ask(service)
        lines, code = told(document, why_not, service)
        if code != 2:
            break
    print("\n".join(lines))
    return code


def ask(service: str) -> tuple[dict[str, Any], str]:
    """What pip-audit found, or why it found nothing."""
    command = [sys.executable, "-m", "pip_audit", "--local", "--skip-editable", "--progress-spinner", "off"]
    try:
        done = subprocess.run(
            [*command, "--vulnerability-service", service, "--format", "json"],
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )
        return json.loads(done.stdout), ""
    except subprocess.TimeoutExpired:
        return {}, f"no answer within {PATIENCE_SECONDS} s"
    except json.JSONDecodeError:
        return {}, (done.stderr.strip().splitlines() or ["pip-audit said nothing"])[-1]


def told(document: dict[str, Any], why_not: str, service: str) -> tuple[list[str], int]:
    """What to print, and the exit code. A package that was skipped is no package without vulnerabilities."""
    packages = document.get("dependencies", [])
    looked_up = [package for package in packages if "skip_reason" not in package]
    skipped = [package for package in packages if "skip_reason" in package]
    if not looked_up:
        reason = why_not or next((package["skip_reason"] for package in skipped), "nothing is installed here")
        return [f"audit: NOT DONE, the advisories of {service} could not be had: {reason}"], 2
    known = [(package, found) for package in looked_up for found in package["vulns"]]
    lines = [
        f"audit: VULNERABLE {package['name']} {package['version']}: {_names(found)}, "
        f"fixed in {', '.join(found.get('fix_versions', [])) or 'no version yet'}"
        for package, found in known
    ]
    lines += [f"audit: not looked up: {package['name']}: {package['skip_reason']}" for package in skipped]
    lines.append(
        f"audit: {len(known)} known vulnerabilities in {len(looked_up)} packages, by the advisories of {service}"
    )
    return lines, 1 if known else 0


def _names(found: dict[str, Any]) -> str:
    """Its name, and those it has elsewhere."""
    aliases = ", ".join(found.get("aliases", []))
    return f"{found['id']} ({aliases})" if aliases else str(found["id"])


if __name__ == "__main__":
    sys.exit(main())
