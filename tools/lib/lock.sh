# shellcheck shell=bash
# One at a time: whoever installs or builds in this clone holds build/lock until its process, or a
# compiler it left behind, has ended. Needs progress.sh.

take_lock() {
  mkdir -p build
  [[ -w build ]] || fail 1 "may not write to $PWD/build"
  exec 9>build/lock
  flock --nonblock 9 && return
  say "another ./riffle is at work here; waiting for it"
  flock --timeout 3600 9 || fail 1 "the other one still holds $PWD/build/lock after an hour"
}
