"""An uplink of the lab that falls and recovers: what sessions decide, not how long it takes."""

import json
import os
import re
import subprocess
import unittest

RIFFLE = os.environ.get("RIFFLE_COMMAND", "riffle")
WORKER = os.environ.get("RIFFLE_WORKER", "riffle-worker")
CLUSTER = "racks:2x2,inner=1ms/2Gbps,outer=2ms/1Gbps"
# Steps that cross the fallen uplink take seconds.
FALL, BACK = 20, 60


def sensed(strategy, steps):
    events = f"at={FALL}s,link=rack1,bandwidth=125Mbps at={BACK}s,link=rack1,bandwidth=1Gbps"
    done = subprocess.run(
        [RIFFLE, "lab", CLUSTER, "--shrink", "20", "--events", events, "--", WORKER]
        + ["--trace", "googlenet", "--strategy", strategy, "--sense", "--steps", str(steps)],
        capture_output=True,
        text=True,
        timeout=500,
    )
    if "no lab here" in done.stderr:
        raise unittest.SkipTest(done.stderr)
    assert done.returncode == 0, done.stderr
    result = json.loads(re.sub(r"^\[0\] ", "", done.stdout.splitlines()[-1]))
    return result["sensed"], done.stderr


class Replan(unittest.TestCase):
    def planned_again(self, strategy, steps=200):
        lines, errors = sensed(strategy, steps)
        self.assertRegex(lines[0]["line"], "sensing: 2 racks: 0-1 . 2-3")
        fallen = [each for each in lines if "; now " in each["line"] and FALL < each["at"] < BACK]
        risen = [each for each in lines if "; now " in each["line"] and each["at"] > BACK]
        self.assertTrue(fallen, errors)
        self.assertTrue(risen, errors)
        for each in fallen[:1] + risen[:1]:
            self.assertRegex(each["line"], r"uplink of rack \d .*Mbps -> .*Mbps")
            self.assertRegex(each["line"], "predicted .* a step instead of ")
        return lines

    def test_ds_sync_regroups(self):
        self.planned_again("ds-sync:pattern=bottleneck", steps=330)  # they are shorter

    def test_mg_wfbp_merges_anew(self):
        self.planned_again("mg-wfbp")

    def test_auto_ranks_anew(self):
        lines = self.planned_again("auto")
        plans = [e for e in lines if re.search("auto (takes|stays with) ", e["line"])]
        self.assertGreaterEqual(len(plans), 3)


if __name__ == "__main__":
    unittest.main()
