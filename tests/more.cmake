# SPDX-License-Identifier: BSD-3-Clause

mx_test(run FOLDERS run link kernel observe tune schedule execute engine stencil grid system machine core backends)
# The examples see only the installed headers and the exported functions of the shared library. Exit status 77: the backend cannot work here.
if(TARGET memext_shared)
  foreach(example fill_and_sum jacobi choose_backend short_run own_grid own_system) # own_grid and own_system run in tests/python/test_run_library.py
    add_executable(example_${example} tests/examples/${example}.c)
    target_link_libraries(example_${example} PRIVATE memext_shared)
  endforeach()
  add_test(NAME example_fill_and_sum COMMAND example_fill_and_sum ${CMAKE_BINARY_DIR})
  foreach(backend dram mmap aio uring) # swap: tests/python/test_examples.py, which makes swap space
    add_test(NAME example_jacobi_${backend} COMMAND example_jacobi ${backend} ${CMAKE_BINARY_DIR})
  endforeach()
  add_test(NAME example_choose_backend COMMAND example_choose_backend ${CMAKE_BINARY_DIR})
  add_test(NAME example_short_run COMMAND example_short_run ${CMAKE_BINARY_DIR})
  set_tests_properties(example_fill_and_sum example_jacobi_dram example_jacobi_mmap example_jacobi_aio
                       example_jacobi_uring example_choose_backend PROPERTIES SKIP_RETURN_CODE 77)
endif()

# Criterion's test processes do not fit into the thread sanitizer's address space; a stand-in of the same name does.
if(MX_SANITIZE MATCHES thread)
  foreach(name machine conformance stencil flow engine schedule grid execute tune observe run wavefront powerloss kernel)
    if(TARGET test_${name})
      target_include_directories(test_${name} BEFORE PRIVATE ${CMAKE_SOURCE_DIR}/tests/tsan)
      target_compile_options(test_${name} PRIVATE -Wno-format-extra-args -Wno-format-zero-length -Wno-clobbered)
    endif()
  endforeach()
endif()
