"""`evalake power`: a plan from what the lake shows, on 80 columns and for machines."""

import json

from tests.integration.cli.command import evalake_here
from tests.integration.cli.conftest import Imported


def test_a_smaller_difference_takes_more_samples(audited: Imported) -> None:
    def samples(detect: float) -> int:
        plan = ("power", "solidity_audit", "--detect", detect, "--metric", "target_detection_rate", "--sd", 0.5)
        done = evalake_here(*plan, "--format", "json", folder=audited.folder)
        assert done.returncode == 0, done.stderr
        assert "assumed: " in done.stderr
        return int(json.loads(done.stdout)[0]["samples"])

    assert samples(0.05) > samples(0.2) > 0


def test_a_difference_that_is_none_is_wrong_usage(audited: Imported) -> None:
    done = evalake_here("power", "solidity_audit", "--detect", 0, folder=audited.folder)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
