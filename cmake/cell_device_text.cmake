# SPDX-License-Identifier: BSD-3-Clause
# The text of cell_device.h as a C array: what kernels are made of for devices that compile them at run time.
set(MX_CELL_DEVICE ${CMAKE_SOURCE_DIR}/runtime/include/memext/cell_device.h)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${MX_CELL_DEVICE})
file(READ ${MX_CELL_DEVICE} MX_CELL_DEVICE_BYTES HEX)
string(REGEX REPLACE "(................................)" "\\1\n" MX_CELL_DEVICE_BYTES "${MX_CELL_DEVICE_BYTES}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," MX_CELL_DEVICE_BYTES "${MX_CELL_DEVICE_BYTES}")
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/cell_device_text.c CONTENT
"/* cell_device.h, made by cmake/cell_device_text.cmake. */
extern const char mx_cell_device_text[];
const char mx_cell_device_text[] = {
${MX_CELL_DEVICE_BYTES}0};
")
target_sources(mx_engine PRIVATE ${CMAKE_BINARY_DIR}/cell_device_text.c)
