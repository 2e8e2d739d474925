# riffle_module(NAME SOURCES ... LINKS ...): one static library per folder of src, linking exactly
# what its line in docs/layout.md names, so that the build files are the dependency graph.
find_program(RIFFLE_CCACHE ccache)
if(RIFFLE_CCACHE)
  # Paths below the sources count as relative, so that clones and work trees share what was compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}
      CCACHE_NOHASHDIR=1 ${RIFFLE_CCACHE})
endif()

add_library(riffle_flags INTERFACE)
target_compile_options(riffle_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # libstdc++ 12 calls a function of its own that it has deprecated, in std::stable_sort.
  target_compile_options(riffle_flags INTERFACE -Wno-deprecated-declarations)
endif()
target_include_directories(riffle_flags INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
if(RIFFLE_SANITIZE)
  target_compile_options(riffle_flags INTERFACE -fsanitize=${RIFFLE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # Sanitizers hide from g++ 12 that an empty std::optional's value is not read.
    target_compile_options(riffle_flags INTERFACE -Wno-maybe-uninitialized)
  endif()
  target_link_options(riffle_flags INTERFACE -fsanitize=${RIFFLE_SANITIZE})
endif()

function(riffle_module name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS" ${ARGN})
  add_library(riffle_${name} STATIC ${ARG_SOURCES})
  set_target_properties(riffle_${name} PROPERTIES UNITY_BUILD ${RIFFLE_UNITY} UNITY_BUILD_BATCH_SIZE 8)
  # Flags are ours alone: who uses the installed package keeps its own.
  target_link_libraries(riffle_${name} PUBLIC $<BUILD_INTERFACE:riffle_flags> ${ARG_LINKS})
  target_include_directories(riffle_${name} INTERFACE $<INSTALL_INTERFACE:include>)
  target_compile_features(riffle_${name} INTERFACE cxx_std_20)
endfunction()
