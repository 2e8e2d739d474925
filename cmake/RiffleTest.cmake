# riffle_test(NAME SOURCES ... LINKS ... [LABEL unit] [ALONE]): one program per folder of tests, its
# cases listed one by one in ctest. Labels: unit (the default), conformance, e2e, long. ALONE: not
# beside other tests, because time matters and all cores are used as it is.
include(GoogleTest)
set(RIFFLE_SHARED_DIR "${PROJECT_SOURCE_DIR}/../shared" CACHE PATH "Published measurements for tests")

# UCX rewrites functions of libc that sanitizers have replaced, and crashes.
set(RIFFLE_SANITIZE_ENVIRONMENT UCX_MEM_MMAP_HOOK_MODE=none)

function(riffle_test name)
  cmake_parse_arguments(ARG "ALONE" "LABEL" "SOURCES;LINKS" ${ARGN})
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  set(timeout 120)
  if(ARG_LABEL STREQUAL long OR RIFFLE_SANITIZE)
    set(timeout 1200)
  endif()
  add_executable(${name}_test ${ARG_SOURCES})
  target_link_libraries(${name}_test PRIVATE ${ARG_LINKS} GTest::gmock GTest::gtest_main)
  target_include_directories(${name}_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  foreach(source IN LISTS ARG_SOURCES)
    # Only where they are used: objects that name no folder are shared between clones by ccache.
    file(STRINGS ${source} uses REGEX "RIFFLE_(SHARED|SOURCE)_DIR" LIMIT_COUNT 1)
    if(uses)
      set_property(SOURCE ${source} APPEND PROPERTY COMPILE_DEFINITIONS
        RIFFLE_SHARED_DIR="${RIFFLE_SHARED_DIR}" RIFFLE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    endif()
  endforeach()
  set(environment "")
  if(RIFFLE_SANITIZE)
    set(environment ENVIRONMENT ${RIFFLE_SANITIZE_ENVIRONMENT})
  endif()
  gtest_discover_tests(${name}_test DISCOVERY_MODE PRE_TEST
    PROPERTIES LABELS ${ARG_LABEL} RUN_SERIAL ${ARG_ALONE} TIMEOUT ${timeout} ${environment})
endfunction()
