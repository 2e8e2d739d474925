# shellcheck shell=bash
# Our own virtual environment in .venv, made on first need. Needs progress.sh and packages.sh.

need_python() {
  need_packages python
  [[ .venv/ready -nt tools/requirements.txt ]] && return
  say "making the Python environment in $PWD/.venv"
  if ! { python3 -m venv .venv && .venv/bin/pip install --quiet --requirement tools/requirements.txt; } \
    >build/python.log 2>&1; then
    tail -n 20 build/python.log >&2
    fail 1 "the Python environment could not be made; its whole output is in $PWD/build/python.log"
  fi
  touch .venv/ready
}

# The CPU build of torch, unless a 2.x is importable there already.
need_torch() {
  .venv/bin/python -c 'import torch, sys; sys.exit(not torch.__version__.startswith("2."))' \
    2>/dev/null && return
  say "installing torch 2.13.0 in $PWD/.venv"
  if ! .venv/bin/pip install --quiet torch==2.13.0 >build/torch.log 2>&1; then
    tail -n 20 build/torch.log >&2
    fail 1 "torch could not be installed; its whole output is in $PWD/build/torch.log"
  fi
}
