# shellcheck shell=bash
# The stages of a test run: planned first, then run one by one, each with its log in build/test/.
# With remember_passed, what passes for the present sources is kept in build/test/passed/, test by
# test as they end, so that a run that was cut off goes on from there. Needs progress.sh, cmake.sh.

records=build/test/passed
remember='' state=''
stages=()
declare -A needs=() command=() verdict=()
passed=0 failed=0 skipped=0 earlier=0
current='' current_start='' spent=0

plan() { # NAME NEEDED_STAGE COMMAND...
  stages+=("$1")
  needs[$1]=$2
  command[$1]=${*:3}
}

file_of() { echo "$records/${1// /-}"; }          # NAME
time_of() { echo "build/test/${1// /-}.seconds"; } # NAME: thousandths

# ---------------------------------------------------------------------------- what has passed

# All that git would commit, as one number; without git, all files but what it ignores.
sources_state() {
  {
    if ! [[ -e .git ]] || ! git ls-files -z --cached --others --exclude-standard 2>/dev/null; then
      find . \( -path ./build -o -path ./.venv -o -path ./.cache -o -path ./.git \) -prune \
        -o \( -name __pycache__ -o -name .ruff_cache \) -prune -o -type f -print0
    fi
  } | sort -z | { xargs -0r sha256sum 2>/dev/null || true; } | sha256sum
}

remember_passed() {
  remember=1
  state=$(sources_state)
  [[ $(cat "$records/state" 2>/dev/null) != "$state" ]] || return 0
  rm -rf "$records"
  mkdir -p "$records"
  echo "$state" >"$records/state"
}

forget_passed() { rm -rf "$records"; }

# Asked before and after each stage: it must not count for sources that it has not seen.
forget_if_changed() {
  [[ -n $remember && $(sources_state) != "$state" ]] || return 0
  say 'sources have changed since this run began: what passes from here on is not remembered'
  remember=''
}

keep_passed() { # NAME DETAIL
  forget_if_changed
  [[ -z $remember ]] || echo "$2" >"$(file_of "$1")"
}

# A build whose users are all done is not needed; otherwise it is run even if it has passed, which
# costs next to nothing: what lies in its folder may have been built from other sources since.
is_done() { # NAME
  [[ -n $remember && -e $(file_of "$1") ]] || return 1
  local user
  for user in "${stages[@]}"; do
    [[ ${needs[$user]} != "$1" ]] || is_done "$user" || return 1
  done
}

# ---------------------------------------------------------------------------- time

seconds_text() { # MILLISECONDS
  printf '%d.%d s' $(($1 / 1000)) $(($1 / 100 % 10))
}

# What the stage under way has taken, with what runs of it took that were cut off.
note_time() {
  [[ -n $current ]] || return 0
  local file
  file=$(time_of "$current")
  spent=$(((${EPOCHREALTIME/./} - ${current_start/./}) / 1000))
  [[ -n $remember ]] || return 0
  [[ ! -e $file.unfinished ]] || spent=$((spent + $(<"$file.unfinished")))
  echo "$spent" >"$file.unfinished"
}

end_time() {
  note_time
  [[ -z $remember ]] || mv "$(time_of "$current").unfinished" "$(time_of "$current")"
  current=''
}

minutes() { # NAME...: by last time
  local name sum=0
  for name in "$@"; do
    [[ ! -e $(time_of "$name") ]] || sum=$((sum + $(<"$(time_of "$name")")))
  done
  echo $(((sum + 59999) / 60000))
}

# ---------------------------------------------------------------------------- the run

# What is to be done, how long it took last time, and what is left of it.
show_plan() {
  local name time unknown=0 left=() word
  for name in "${stages[@]}"; do
    time='' word=left
    [[ ! -e $(time_of "$name") ]] || time=$(<"$(time_of "$name")")
    if is_done "$name"; then
      word='passed earlier'
    else
      left+=("$name")
      [[ -n $time ]] || unknown=$((unknown + 1))
      [[ ! -s $(file_of "$name").tests ]] ||
        word="left, but for $(wc -l <"$(file_of "$name").tests") tests that passed earlier"
    fi
    printf '      %-24s %10s  %s\n' "$name" "${time:+$(seconds_text "$time")}" "$word"
  done
  printf '%d of %d stages left; those took %d min last time' "${#left[@]}" "${#stages[@]}" \
    "$(minutes "${left[@]}")"
  ((unknown == 0)) || printf ', %d have not been timed' "$unknown"
  echo
}

report() { # WORD NAME TIME DETAIL
  printf '%-4s  %-24s %10s  %s\n' "$1" "$2" "$3" "$4"
  verdict[$2]=$1
}

run_stages() {
  local name words
  for name in "${stages[@]}"; do
    if is_done "$name"; then
      count_earlier "$name"
    elif [[ ${verdict[${needs[$name]:-none}]-} == FAIL ]]; then
      report - "$name" '' "not run: ${needs[$name]} failed"
    else
      forget_if_changed
      current=$name current_start=$EPOCHREALTIME
      read -ra words <<<"${command[$name]}"
      case ${words[0]} in
        tests) "${words[@]}" ;;
        *) check "${words[@]}" ;;
      esac
    fi
  done
}

# "3 passed, 0 failed, 1 skipped" is of a stage of tests; any other stage is one check.
count_earlier() { # NAME
  local detail good=1 left_out=0
  detail=$(<"$(file_of "$1")")
  [[ ! $detail =~ ^([0-9]+)\ passed,\ 0\ failed,\ ([0-9]+)\ skipped$ ]] ||
    good=${BASH_REMATCH[1]} left_out=${BASH_REMATCH[2]}
  passed=$((passed + good)) skipped=$((skipped + left_out)) earlier=$((earlier + good))
  report 'done' "$1" '' "$detail"
}

# One check. Its stdout is kept in a log, and shown when it fails; the last line also when not.
check() { # COMMAND...
  local name=$current log detail
  log=build/test/${name// /-}.log
  if "$@" | tee -i "$log" | ninja_progress "$name"; then
    end_time
    passed=$((passed + 1))
    detail=$(tail -n 1 "$log")
    keep_passed "$name" "$detail"
    report ok "$name" "$(seconds_text "$spent")" "$detail"
  else
    end_time
    failed=$((failed + 1))
    grep -v '^\[[0-9]*/[0-9]*\]' "$log" | tail -n 100
    report FAIL "$name" "$(seconds_text "$spent")" "alone: $*"
  fi
}

# ---------------------------------------------------------------------------- tests

ctest_progress() { # LABEL: reads ctest's lines " 3/40 Test #3: name ..."
  sed -unE 's|^ *([0-9]+)/([0-9]+) Test +#[0-9]+: (\S+).*|[\1/\2] \3|p' | ninja_progress "$1"
}

count() { # PATTERN LOG: ctest's result lines " 3/40 Test #3: name ....   Passed" that match
  grep -cE "^ *[0-9]+/[0-9]+ Test +#[0-9]+: .*$1" "$2" || true
}

# Numbers of the listed tests that have not passed, in ctest's words for "these and no others".
not_passed() { # FILE_OF_PASSED: reads `ctest -N`
  sed -nE 's/^ *Test +#([0-9]+): (.*)/\1 \2/p' |
    awk 'FILENAME != "-" {passed[$0]; next}
         {number = $1; sub(/^[0-9]+ /, ""); if (!($0 in passed)) numbers = numbers "," number}
         END {print "0,0,0" numbers}' "$1" -
}

# Adds the names of tests that pass to a file, as ctest's lines come by.
keep_tests() { # FILE
  trap '' INT # as show_progress
  if [[ -n $remember ]]; then
    sed -unE 's/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: (\S+) \.+ +Passed .*/\1/p' >>"$1"
  else
    cat >/dev/null
  fi
}

# Tests share two cores with each other; one that fails is tried once more with the machine to
# itself, and is named in the result. More than a few are no accident of time. Sets `again`.
second_try() { # PRESET HOW_MANY FILE_OF_PASSED
  local log=build/test/tests-$1-again.log
  (($2 <= 5)) || return 1
  say "$2 failed beside others: again, alone"
  ctest --preset "$1" --rerun-failed --timeout 300 --output-on-failure >"$log" 2>&1 || return 1
  (keep_tests "$3" <"$log")
  again=$(sed -nE 's/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: (\S+) \.+ +Passed .*/\1/p' "$log" | xargs)
}

# All tests of a preset that the labels select; each counts. Those that have passed are not repeated.
tests() { # PRESET CTEST_ARGUMENT...
  local name=$current preset=$1 log=build/test/tests-$1.log word=ok before=0 good bad left_out detail
  local these=() kept again=
  shift
  kept=$(file_of "$name").tests
  if [[ -n $remember && -s $kept ]]; then
    before=$(wc -l <"$kept")
    these=(-I "$(ctest --preset "$preset" -N "$@" | not_passed "$kept")")
  fi
  : >"$log"
  if [[ ${these[1]-} != 0,0,0 ]] &&
    ! ctest --preset "$preset" --parallel "$(nproc)" --timeout 300 --no-tests=error \
      --output-on-failure "$@" "${these[@]}" 2>&1 |
      tee -i "$log" >(keep_tests "$kept") | ctest_progress "tests $preset"; then
    word=FAIL
    grep -vE '^ +Start |Passed +[0-9.]+ sec' "$log" | tail -n 200
  fi
  good=$(count ' Passed ' "$log") left_out=$(count '\*\*\*Skipped ' "$log")
  bad=$(($(count '' "$log") - good - left_out))
  [[ $word == ok ]] || ((bad > 0)) || bad=1 # no test at all, say, is a failure of its own
  if [[ $word != ok ]] && second_try "$preset" "$bad" "$kept"; then
    word=ok good=$((good + bad)) bad=0
  fi
  end_time
  passed=$((passed + good + before)) failed=$((failed + bad)) skipped=$((skipped + left_out))
  earlier=$((earlier + before))
  detail="$((good + before)) passed, $bad failed, $left_out skipped"
  [[ $word != ok ]] || keep_passed "$name" "$detail"
  ((before == 0)) || detail+="; $before of them passed earlier"
  [[ -z $again ]] || detail+="; only on a second try, alone: $again"
  [[ $word == ok ]] || detail+="; alone: ctest --preset $preset --rerun-failed"
  report "$word" "$name" "$(seconds_text "$spent")" "$detail"
}

sum_up() {
  [[ -z $remember ]] || echo "$(minutes "${stages[@]}") min in all, earlier runs included"
  ((earlier == 0)) || echo "$earlier of these passed in earlier runs, of the same sources"
  printf '%d passed, %d failed' "$passed" "$failed"
  ((skipped == 0)) || printf ', %d skipped' "$skipped"
  echo
  ((failed == 0))
}
