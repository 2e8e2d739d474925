# RIFFLE_TORCH: the folder of an installed torch wheel (torch.__path__[0]), by default that of the
# project's own environment or of the Python that builds a wheel; empty where there is none, and with sanitizers, which its libraries
# were not built with.
set(RIFFLE_TORCH "" CACHE PATH "Folder of the torch package; empty: look in .venv")
if(NOT RIFFLE_TORCH AND NOT RIFFLE_SANITIZE)
  file(GLOB found ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch/lib/libtorch_cpu.so)
  if(found)
    list(GET found 0 found)
    cmake_path(GET found PARENT_PATH found)
    cmake_path(GET found PARENT_PATH RIFFLE_TORCH)
  else()
    # pip install --no-build-isolation: that of the Python that builds.
    find_package(Python 3.11 QUIET COMPONENTS Interpreter)
    if(SKBUILD AND Python_FOUND)
      execute_process(OUTPUT_VARIABLE RIFFLE_TORCH OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET
        COMMAND ${Python_EXECUTABLE} -c "from importlib.util import find_spec as f; print(f('torch').submodule_search_locations[0])")
    endif()
  endif()
endif()
