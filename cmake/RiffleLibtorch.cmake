# riffle_libtorch(NAME FOLDER): a target for the libtorch of a torch wheel or of libtorch's own
# archive. Its headers come after all others: they bring a fmt of their own.
function(riffle_libtorch name folder)
  add_library(${name} INTERFACE IMPORTED GLOBAL)
  target_compile_options(${name} INTERFACE
    "SHELL:-idirafter ${folder}/include"
    "SHELL:-idirafter ${folder}/include/torch/csrc/api/include")
  foreach(library torch torch_cpu c10)
    target_link_libraries(${name} INTERFACE ${folder}/lib/lib${library}.so)
  endforeach()
  target_link_options(${name} INTERFACE "-Wl,-rpath,${folder}/lib")
endfunction()
