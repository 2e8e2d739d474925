# shellcheck shell=bash
# Messages and progress on stderr: one live line on a terminal, plain lines otherwise.

say() { printf 'riffle: %s\n' "$*" >&2; }

fail() { # STATUS MESSAGE...
  local status=$1
  shift
  say "$@"
  exit "$status"
}

# Shows lines "PERCENT TEXT" of stdin under a label. Outlives Ctrl-C, so that the writer can still
# clean up instead of dying of a closed pipe.
show_progress() { # LABEL
  local label=$1 percent text next=0
  trap '' INT
  while read -r percent text; do
    if [[ -t 2 ]]; then
      printf '\r\e[K%s  %3d %%  %.60s' "$label" "$percent" "$text" >&2
    elif ((percent >= next)); then
      printf 'riffle: %s  %3d %%\n' "$label" "$percent" >&2
      next=$((percent / 25 * 25 + 25))
    fi
  done
  [[ ! -t 2 ]] || printf '\r\e[K' >&2
}
