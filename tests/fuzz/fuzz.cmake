# SPDX-License-Identifier: BSD-3-Clause
# Fuzz targets (preset fuzz, clang): tests/fuzz/fuzz_<name>.c on all of memext. `all` builds no command and no tests, only these.
function(mx_fuzz name)
  list(TRANSFORM MX_LIBRARIES REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE objects)
  add_executable(fuzz_${name} tests/fuzz/fuzz_${name}.c ${objects})
  target_include_directories(fuzz_${name} PRIVATE runtime/include runtime tests/fuzz)
  target_link_libraries(fuzz_${name} PRIVATE ${MX_LINK} ${ARGN})
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
endfunction()

mx_fuzz(plan)
mx_fuzz(npy)
mx_fuzz(array)
mx_fuzz(store)
mx_fuzz(options -Wl,--wrap=open,--wrap=fopen,--wrap=stat,--wrap=access)
mx_fuzz(topology)
mx_fuzz(fault)
mx_fuzz(note)

# Vector kernels read no input, and clang needs minutes to instrument them.
target_compile_options(mx_stencil PRIVATE -O1 -fno-sanitize=all)
