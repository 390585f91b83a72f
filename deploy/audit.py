"""Ask OSV (osv.dev) which vulnerabilities are known of what requirements.lock pins; `make audit` runs it.

Exit status: 0 where none is known, 1 where some are (a line each), 3 where OSV could not be asked.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

LOCK = Path(__file__).resolve().parents[1] / "requirements.lock"
OSV = "https://api.osv.dev/v1/query"
OTHER_OSV = "EVALAKE_OSV_URL"  # for a mirror of it


def main() -> int:
    """Audit the lock; returns the exit status."""
    address = os.environ.get(OTHER_OSV, OSV)
    print(f"Asking {address} about every package of {LOCK.name} …", flush=True)
    packages = _audited(address)
    known = [(package, each) for package in packages for each in package["vulns"]]
    for package, each in known:
        mended = f"mended in {', '.join(each['fix_versions'])}" if each["fix_versions"] else "no version mends it"
        print(f"{package['name']} {package['version']}: {each['id']}, {mended}")
    counted = "no vulnerability is known" if not known else f"{len(known)} vulnerabilities are known"
    print(f"{len(packages)} packages: {counted}")
    return 1 if known else 0


def _audited(address: str) -> list[dict[str, Any]]:
    """List each package with its vulnerabilities, as pip-audit reports it. At installation pip checks the hashes."""
    asked = ["--vulnerability-service", "osv", "--osv-url", address, "--disable-pip", "--require-hashes"]
    options = ["--format", "json", "--progress-spinner", "off", "--requirement", str(LOCK)]
    command = [sys.executable, "-m", "pip_audit", *asked, *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        packages: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except json.JSONDecodeError:
        _not_asked(done.stderr.strip().rpartition("\n")[2] or f"pip-audit ended with {done.returncode}")
    if skipped := [package["name"] for package in packages if "vulns" not in package]:
        _not_asked(f"{', '.join(skipped)} could not be looked up")
    return packages


def _not_asked(why: str) -> NoReturn:
    reason = why.partition(" (Caused by")[0][:300]
    print(f"audit: nothing is known, for OSV could not be asked: {reason}", file=sys.stderr)
    print(f"Try again where api.osv.dev can be reached, or name a mirror of it with {OTHER_OSV}.", file=sys.stderr)
    sys.exit(3)


if __name__ == "__main__":
    sys.exit(main())
