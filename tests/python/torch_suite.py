"""PyTorch's own tests of torch.distributed, those inside the wheel, on Gloo and on riffle.

    tests/python/torch_suite.py --for 300        # goes on where it stopped, for so many seconds
    tests/python/torch_suite.py --report         # both columns, from what was run so far
    tests/python/torch_suite.py --only test_gather --backend riffle

Needs PYTHONPATH to name the package (build/release/python). Many tests ask whether the backend is
"gloo" and skip themselves otherwise; the name that they see says yes to "gloo" and is "riffle" for
torch. What torch itself refuses to any backend but Gloo is listed, not counted as passed.
Every test runs in a process of its own that forks three workers; results are written after each.
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import time
import unittest
from pathlib import Path
from typing import Any

MODULE = "torch.testing._internal.distributed.distributed_test"
RESULTS = Path("build/torch_suite.json")
WORKERS = "3"


class Name(str):
    """ "riffle", to whom "gloo" is the same."""

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other) is True or other == "gloo"

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash("gloo")


def load_suite(backend: str) -> Any:
    """The suite, for this backend."""
    os.environ.update(BACKEND=backend, WORLD_SIZE=WORKERS, INIT_METHOD="env://")
    os.environ.setdefault("TEMP_DIR", "/tmp")
    import torch
    from torch.testing._internal import common_distributed

    spec = importlib.util.find_spec(MODULE)
    assert spec is not None
    assert spec.origin is not None
    source = Path(spec.origin).read_text()
    if backend == "riffle":
        import riffle.distributed  # noqa: F401

        for feature in ("plugin", "subgroup"):
            common_distributed.DistTestCases.backend_feature[feature].add("riffle")
        line = 'BACKEND = os.environ["BACKEND"]'
        assert source.count(line) == 1, "the suite finds its backend elsewhere"
        source = source.replace(line, "from __main__ import Name; BACKEND = Name('riffle')")
    suite = importlib.util.module_from_spec(spec)
    sys.modules[MODULE] = suite
    exec(compile(source, spec.origin, "exec"), suite.__dict__)

    class OnThreeWorkers(suite.TestDistBackend, suite.DistributedTest._DistTestBase):
        def setUp(self) -> None:
            super().setUp()
            self._start_processes(torch.multiprocessing.get_context("fork").Process)

    return OnThreeWorkers


def run_here(backend: str, tests: list[str]) -> None:
    """Runs tests in this process; a line of JSON for each."""
    suite = load_suite(backend)
    os.environ.setdefault("MASTER_PORT", "29741")
    for name in tests:
        result = unittest.TestResult()
        began = time.monotonic()
        suite(name).run(result)
        trouble = [text for _, text in result.failures + result.errors]
        outcome = "failed" if trouble else "skipped" if result.skipped else "passed"
        why = trouble[0] if trouble else result.skipped[0][1] if result.skipped else ""
        row = {"outcome": outcome, "why": why, "seconds": round(time.monotonic() - began, 1)}
        print("\nRESULT " + json.dumps([name, row]), flush=True)


def list_tests() -> list[str]:
    suite = load_suite("gloo")
    return unittest.TestLoader().getTestCaseNames(suite)  # type: ignore[return-value]


def in_process(arguments: list[str], timeout: float) -> str:
    """Output of this file as a process of its own, ended with all it started."""
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", __file__, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            output = process.communicate()[0] + f"\nnot done after {timeout} s"
    return output


def save(results: dict[str, Any]) -> None:
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    fresh = RESULTS.with_suffix(".new")
    fresh.write_text(json.dumps(results, indent=1))
    fresh.replace(RESULTS)


def run_missing(results: dict[str, Any], backends: list[str], only: str, until: float) -> None:
    if not results.get("tests"):
        results["tests"] = json.loads(in_process(["--list"], 300).splitlines()[-1])
    batch = 30
    for backend in backends:
        done = results.setdefault(backend, {})
        todo = [n for n in results["tests"] if only in n and (n not in done or only)]
        while todo and time.monotonic() < until:
            some, todo = todo[:batch], todo[batch:]
            output = in_process(["--run", backend, *some], 60 + 60 * len(some))
            rows = [json.loads(x[7:]) for x in output.splitlines() if x.startswith("RESULT ")]
            done.update(dict(rows))
            if len(rows) < len(some):  # it ended in the middle of the next one
                name = some[len(rows)]
                done[name] = {"outcome": "failed", "why": output[-2000:], "seconds": 0}
                todo = some[len(rows) + 1 :] + todo
            save(results)
            print(f"{backend}: {len(done)} of {len(results['tests'])}", flush=True)


def report(results: dict[str, Any]) -> int:
    """Both columns; the number of tests that Gloo passes and riffle does not."""
    missing = []
    print(f"{'test':60} {'gloo':8} riffle")
    for name in results.get("tests", []):
        gloo, ours = (results.get(b, {}).get(name, {}) for b in ("gloo", "riffle"))
        pair = gloo.get("outcome", "-"), ours.get("outcome", "-")
        if "passed" in pair or "failed" in pair:
            print(f"{name:60} {pair[0]:8} {pair[1]}")
        if pair[0] == "passed" and pair[1] not in ("passed", "-"):
            missing.append((name, ours.get("why", "").strip().splitlines() or ["?"]))
    for backend in ("gloo", "riffle"):
        rows = list(results.get(backend, {}).values())
        counts = {o: sum(r["outcome"] == o for r in rows) for o in ("passed", "failed", "skipped")}
        print(backend, counts)
    for name, why in missing:
        print(f"\n{name}: Gloo passes, riffle does not:\n  {why[-1]}")
    return len(missing)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--for", dest="seconds", type=float, default=300)
    parser.add_argument("--backend", choices=["gloo", "riffle"], action="append")
    parser.add_argument("--only", default="", help="tests whose name has this, again")
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--list", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--run", nargs="+", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.list:
        print(json.dumps(list_tests()))
        return 0
    if args.run:
        run_here(args.run[0], args.run[1:])
        return 0
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if not args.report:
        until = time.monotonic() + args.seconds
        run_missing(results, args.backend or ["riffle", "gloo"], args.only, until)
    return 1 if report(results) else 0


if __name__ == "__main__":
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    sys.exit(main())
