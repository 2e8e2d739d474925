# `cmake --install build/release --prefix P`: headers, libraries and what find_package(riffle) reads.
# riffle::riffle is all of it but torch; single modules are riffle::model, riffle::simulate and so on.
# riffle::torch, where it was built, is the component `torch`, since it needs libtorch.
include(CMakePackageConfigHelpers)
find_package(ucx QUIET)
set(RIFFLE_HAS_UCX OFF)
if(TARGET ucx::ucp)
  set(RIFFLE_HAS_UCX ON)
endif()

add_library(riffle_riffle INTERFACE)
target_link_libraries(riffle_riffle INTERFACE riffle_plan riffle_simulate riffle_converge riffle_verify riffle_runtime)

set(modules base model codec pattern cost strategies schedule verify simulate converge plan engine collective measure runtime)
foreach(name IN LISTS modules ITEMS riffle)
  set_target_properties(riffle_${name} PROPERTIES EXPORT_NAME ${name})
  install(TARGETS riffle_${name} EXPORT riffle COMPONENT development)
endforeach()

set(folder ${CMAKE_INSTALL_LIBDIR}/cmake/riffle)
install(DIRECTORY include/riffle DESTINATION include COMPONENT development
        PATTERN torch.h EXCLUDE)
set(RIFFLE_HAS_TORCH OFF)
if(TARGET riffle_torch)
  set(RIFFLE_HAS_TORCH ON)
  set_target_properties(riffle_torch PROPERTIES EXPORT_NAME torch)
  install(TARGETS riffle_torch EXPORT riffle-torch COMPONENT development)
  install(FILES include/riffle/torch.h DESTINATION include/riffle COMPONENT development)
  install(EXPORT riffle-torch NAMESPACE riffle:: FILE riffle-torch-targets.cmake
          DESTINATION ${folder} COMPONENT development)
  install(FILES cmake/RiffleLibtorch.cmake DESTINATION ${folder} COMPONENT development)
endif()
install(EXPORT riffle NAMESPACE riffle:: FILE riffle-targets.cmake DESTINATION ${folder}
        COMPONENT development)
configure_package_config_file(cmake/riffle-config.cmake.in riffle-config.cmake
  INSTALL_DESTINATION ${folder})
write_basic_package_version_file(riffle-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/riffle-config.cmake
              ${PROJECT_BINARY_DIR}/riffle-config-version.cmake
        DESTINATION ${folder} COMPONENT development)
