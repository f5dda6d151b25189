# SPDX-License-Identifier: BSD-3-Clause
# The text of cell.h as a C array: a library that was moved, or whose headers are not installed, compiles kernels all the same.
set(MX_CELL ${CMAKE_SOURCE_DIR}/runtime/include/memext/cell.h)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${MX_CELL})
file(READ ${MX_CELL} MX_CELL_BYTES HEX)
string(REGEX REPLACE "(................................)" "\\1\n" MX_CELL_BYTES "${MX_CELL_BYTES}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," MX_CELL_BYTES "${MX_CELL_BYTES}")
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/cell_text.c CONTENT
"/* cell.h, made by cmake/cell_text.cmake. */
#include <stddef.h>
extern const char mx_cell_text[];
extern const size_t mx_cell_text_bytes;
const char mx_cell_text[] = {
${MX_CELL_BYTES}0};
const size_t mx_cell_text_bytes = sizeof mx_cell_text - 1;
")
target_sources(mx_kernel PRIVATE ${CMAKE_BINARY_DIR}/cell_text.c)
