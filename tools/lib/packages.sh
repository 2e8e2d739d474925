# shellcheck shell=bash
# Debian packages: which are needed for what, which are missing, and how they get installed.
# Needs progress.sh.

packages_for() { # PURPOSE...
  local purpose
  for purpose in "$@"; do
    case $purpose in
      build) echo g++ cmake ninja-build ccache libcli11-dev libfmt-dev nlohmann-json3-dev libucx-dev ;;
      test) echo libgtest-dev libgmock-dev libbenchmark-dev python3 python3-dev pybind11-dev ;;
      lint) echo clang-format-19 shellcheck ;;
      tidy) echo clang-tidy-19 ;;
      clang) echo clang-19 libclang-rt-19-dev ;;
      mpi) echo openmpi-bin libopenmpi-dev ;;
      package) echo python3-dev pybind11-dev ;;
      npm) command -v npm >/dev/null || echo npm ;; # nodejs may bring it, too
      browser) command -v chromium >/dev/null || echo chromium fonts-dejavu-core ;;
      lab) echo iputils-ping iperf3 ;;
      bare) echo debootstrap git ;;
      python) echo python3-venv ca-certificates ;;
      *) fail 1 "no packages are known for '$purpose'" ;;
    esac
  done
}

missing_packages() { # PACKAGE...
  local -A installed=()
  local status name
  if command -v dpkg-query >/dev/null; then
    while read -r status name; do
      [[ $status == ii ]] && installed[$name]=1
    done < <(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' "$@" 2>/dev/null)
  fi
  for name in "$@"; do
    [[ -n ${installed[$name]-} ]] || echo "$name"
  done
}

# Prints the words to put before apt-get, or fails where this user may not install.
become_root() {
  ((EUID != 0)) || return 0
  command -v sudo >/dev/null || return 1
  # Without a terminal nobody can answer sudo's question.
  [[ -t 0 && -t 2 ]] || sudo -n true 2>/dev/null || return 1
  echo sudo
}

print_install_line() { # PACKAGE...
  local sudo='' who='as root '
  if command -v sudo >/dev/null; then sudo='sudo ' who=''; fi
  say "Debian packages are missing and may not be installed from here; run this ${who}and try again:"
  echo "${sudo}apt-get update && ${sudo}apt-get install --yes --no-install-recommends $*" >&2
}

apt_progress() { # LABEL: reads apt's Status-Fd lines "dlstatus:1:12.5:Retrieving ..."
  local kind percent text
  while IFS=: read -r kind _ percent text; do
    case $kind in
      dlstatus) echo "$((${percent%.*} / 2)) $text" ;;
      pmstatus) echo "$((50 + ${percent%.*} / 2)) $text" ;;
    esac
  done | show_progress "$1"
}

# Status lines go to the pipe and all else to the log. The shell in between is for sudo, which passes
# on no other file than the first three.
apt_install() { # LOG PREFIX PACKAGE...
  local log=$1 prefix=$2
  shift 2
  # shellcheck disable=SC2086 # an empty prefix must vanish
  $prefix sh -c 'DEBIAN_FRONTEND=noninteractive exec apt-get "$@" 3>&1 1>&2' apt-get \
    install --yes --no-install-recommends -o APT::Status-Fd=3 -o DPkg::Lock::Timeout=300 "$@" \
    </dev/null 2>"$log" | apt_progress "installing $# packages"
}

need_packages() { # PURPOSE...
  local wanted missing prefix log=build/packages.log
  mapfile -t wanted < <(packages_for "$@" | tr ' ' '\n')
  mapfile -t missing < <(missing_packages "${wanted[@]}")
  ((${#missing[@]} > 0)) || return 0

  if ! command -v apt-get >/dev/null || ! prefix=$(become_root); then
    print_install_line "${missing[@]}"
    exit 1
  fi
  say "installing ${missing[*]}"
  apt_install "$log" "$prefix" "${missing[@]}" && return
  grep -qE 'Unable to (locate|fetch)|no installation candidate|Failed to fetch' "$log" || show_apt_failure "$log"
  say "the package lists are missing or old; fetching them"
  # shellcheck disable=SC2086 # as above
  $prefix apt-get update -o DPkg::Lock::Timeout=300 >"$log" 2>&1 </dev/null || show_apt_failure "$log"
  apt_install "$log" "$prefix" "${missing[@]}" || show_apt_failure "$log"
}

show_apt_failure() { # LOG
  grep -E -A 2 '^(E|W|Err|dpkg: error)' "$1" >&2 || tail -n 20 "$1" >&2
  fail 1 "apt-get failed; its whole output is in $PWD/$1"
}
