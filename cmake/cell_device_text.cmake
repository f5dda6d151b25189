# SPDX-License-Identifier: BSD-3-Clause
# The text of cell_device.h as a C array: what kernels are made of for devices that compile them at run time. What SET stores in whole numbers
# stands in cell.h alone, between two marks; it goes before the line of cell_device.h that begins with "/* MX_CONVERSIONS".
set(MX_CELL_DEVICE ${CMAKE_SOURCE_DIR}/runtime/include/memext/cell_device.h)
set(MX_CELL ${CMAKE_SOURCE_DIR}/runtime/include/memext/cell.h)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${MX_CELL_DEVICE} ${MX_CELL})

# The bytes of [from, end) of a file, as hexadecimal digits.
function(mx_bytes file from end out)
    math(EXPR length "${end} - ${from}")
    file(READ ${file} bytes OFFSET ${from} LIMIT ${length} HEX)
    set(${out} "${bytes}" PARENT_SCOPE)
endfunction()
function(mx_find file mark out)
    file(READ ${file} text HEX)
    string(HEX "${mark}" mark)
    string(FIND "${text}" "${mark}" at)
    if(at LESS 0)
        message(FATAL_ERROR "${file} lacks a mark of the conversions")
    endif()
    math(EXPR at "${at} / 2")
    set(${out} ${at} PARENT_SCOPE)
endfunction()

mx_find(${MX_CELL} "#ifndef MX_CONVERSION_\n" MX_FROM)
mx_find(${MX_CELL} "/* MX_CONVERSIONS end */" MX_TO)
mx_find(${MX_CELL_DEVICE} "/* MX_CONVERSIONS" MX_WHERE)
file(SIZE ${MX_CELL_DEVICE} MX_SIZE)
mx_bytes(${MX_CELL_DEVICE} 0 ${MX_WHERE} MX_BEFORE)
mx_bytes(${MX_CELL} ${MX_FROM} ${MX_TO} MX_CONVERSIONS)
mx_bytes(${MX_CELL_DEVICE} ${MX_WHERE} ${MX_SIZE} MX_AFTER)
string(REGEX REPLACE "(................................)" "\\1\n" MX_CELL_DEVICE_BYTES "${MX_BEFORE}${MX_CONVERSIONS}${MX_AFTER}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," MX_CELL_DEVICE_BYTES "${MX_CELL_DEVICE_BYTES}")
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/cell_device_text.c CONTENT
"/* cell_device.h, made by cmake/cell_device_text.cmake. */
extern const char mx_cell_device_text[];
const char mx_cell_device_text[] = {
${MX_CELL_DEVICE_BYTES}0};
")
target_sources(mx_engine PRIVATE ${CMAKE_BINARY_DIR}/cell_device_text.c)
