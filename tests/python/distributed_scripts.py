"""Scripts that use the backend "riffle", as users write them, run by several workers."""

import os
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

PRELUDE = """
import os, signal, sys, time
from datetime import timedelta
import torch, torch.distributed as dist
import riffle.distributed
dist.init_process_group(os.environ.get("BACKEND", "riffle"), timeout=timedelta(seconds=60))
rank, size = dist.get_rank(), dist.get_world_size()
"""


def run(
    body: str,
    workers: int = 3,
    backend: str = "riffle",
    check: bool = True,
    waits_for: int | None = None,
    **env: str,
) -> list[str]:
    """What each of the workers of a script printed, by rank; when the first `waits_for` of them
    have ended, the others are killed."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "script.py"
        script.write_text(PRELUDE + textwrap.dedent(body))
        common = {
            **os.environ,
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(29000 + os.getpid() % 900),
            "WORLD_SIZE": str(workers),
            "BACKEND": backend,
            "RIFFLE_FAILURE_TIMEOUT": "30s",  # a busy machine is no failure
            **env,
        }
        processes = [
            subprocess.Popen(
                [sys.executable, "-W", "ignore", str(script)],
                env={**common, "RANK": str(rank)},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for rank in range(workers)
        ]
        try:
            outputs = [process.communicate(timeout=240)[0] for process in processes[:waits_for]]
        finally:
            for process in processes:
                process.kill()
                process.wait()
    if check:
        codes = [process.returncode for process in processes]
        assert not any(codes), "\n".join([f"exit codes {codes}", *outputs])
    return outputs
