# shellcheck shell=bash
# Configuring and building a preset, with progress and a log. Needs progress.sh.

ninja_progress() { # LABEL: reads ninja's lines "[3/40] Building ..."
  local line
  while IFS= read -r line; do
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\]\ (.*) ]] || continue
    echo "$((100 * BASH_REMATCH[1] / BASH_REMATCH[2])) ${BASH_REMATCH[3]##* }"
  done | show_progress "$1"
}

# cmake notices changed CMakeLists itself, but not changed presets, nor an interrupted first run.
needs_configure() { # PRESET
  [[ ! -e build/$1/build.ninja || CMakePresets.json -nt build/$1/build.ninja ]]
}

configure() { # PRESET CMAKE_ARGUMENT...
  local preset=$1 log=build/$1/configure.log
  shift
  say "configuring build/$preset"
  if ! cmake --preset "$preset" "$@" >"$log" 2>&1; then
    grep -A 12 'CMake Error' "$log" >&2 || cat "$log" >&2
    fail 1 "configuring failed; its whole output is in $PWD/$log"
  fi
}

compile() { # PRESET TARGET
  local preset=$1 target=$2 log=build/$1/build.log
  if ! NINJA_STATUS='[%f/%t] ' ninja -C "build/$preset" -j "$(nproc)" "$target" 2>&1 |
    tee -i "$log" | ninja_progress "building $preset:$target"; then
    sed -n '/^FAILED:\|^ninja: error/,$p' "$log" | grep -v '^\[' | head -n 60 >&2
    fail 1 "the build failed; its whole output is in $PWD/$log"
  fi
}
