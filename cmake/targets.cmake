# SPDX-License-Identifier: BSD-3-Clause
# What is delivered: libmemext (static and shared), the command memext with its stencil7p links, completions, headers, man page, pkg-config and CMake package files.
include(GNUInstallDirs)

set(MX_LIBRARY_OBJECTS ${MX_LIBRARIES})
list(REMOVE_ITEM MX_LIBRARY_OBJECTS mx_cli)
if(NOT TARGET mx_core OR NOT TARGET mx_backends)
  return()
endif()
list(TRANSFORM MX_LIBRARY_OBJECTS REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>")

add_library(memext_static STATIC ${MX_LIBRARY_OBJECTS})
target_link_libraries(memext_static PRIVATE ${MX_LINK})
add_library(memext_shared SHARED ${MX_LIBRARY_OBJECTS})
target_link_libraries(memext_shared PRIVATE ${MX_LINK})
# The shared library exports the functions that memext.h names and nothing else.
set(MX_HEADER ${CMAKE_SOURCE_DIR}/runtime/include/memext/memext.h)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${MX_HEADER}) # its version, its functions
file(READ ${MX_HEADER} MX_NAMES)
string(REGEX MATCHALL "mx_[a-z0-9_]+\\(" MX_NAMES "${MX_NAMES}")
list(REMOVE_DUPLICATES MX_NAMES)
list(TRANSFORM MX_NAMES REPLACE "\\(" "\\\\;")
list(JOIN MX_NAMES " " MX_NAMES)
set(MX_EXPORTS ${CMAKE_BINARY_DIR}/libmemext.map)
file(CONFIGURE OUTPUT ${MX_EXPORTS} CONTENT "MEMEXT_${PROJECT_VERSION_MAJOR} { global: ${MX_NAMES} local: *;\n};\n")
target_link_options(memext_shared PRIVATE -Wl,--version-script=${MX_EXPORTS})
set_target_properties(memext_shared PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
                      LINK_DEPENDS ${MX_EXPORTS} EXPORT_NAME memext)
foreach(library memext_static memext_shared)
  set_target_properties(${library} PROPERTIES OUTPUT_NAME memext LINKER_LANGUAGE C)
  target_include_directories(${library} PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/runtime/include>
                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endforeach()

install(TARGETS memext_static)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY runtime/include/memext DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY systems DESTINATION ${CMAKE_INSTALL_DATADIR}/memext FILES_MATCHING PATTERN "*.c" PATTERN "*.py")

# Pages of man section 3 are made from the header, their one source.
find_package(Python3 COMPONENTS Interpreter)
if(Python3_Interpreter_FOUND)
  set(MX_MAN3 ${CMAKE_BINARY_DIR}/man3)
  add_custom_command(OUTPUT ${MX_MAN3}/memext.3
                     COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/docs/make_man3.py ${MX_HEADER} ${MX_MAN3} ${PROJECT_VERSION}
                     DEPENDS ${MX_HEADER} ${CMAKE_SOURCE_DIR}/docs/make_man3.py VERBATIM)
  add_custom_target(man3 ALL DEPENDS ${MX_MAN3}/memext.3)
  add_dependencies(memext_shared man3)
  install(DIRECTORY ${MX_MAN3} DESTINATION ${CMAKE_INSTALL_MANDIR})
else()
  message(STATUS "python3 not found: no manual pages of the library")
endif()

# The command links the static library, for it uses internal functions that the shared one hides.
if(TARGET mx_cli AND EXISTS ${CMAKE_SOURCE_DIR}/runtime/cli/main.c)
  add_executable(memext runtime/cli/main.c $<TARGET_OBJECTS:mx_cli>)
  target_include_directories(memext PRIVATE runtime/include ${CMAKE_BINARY_DIR}/view/cli)
  target_link_libraries(memext PRIVATE memext_static ${MX_LINK})
  install(TARGETS memext)
  configure_file(docs/memext.1 memext.1 @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/memext.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES cmake/completion/memext DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES cmake/completion/_memext DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  foreach(points 7 19 27)
    add_custom_command(TARGET memext POST_BUILD
                       COMMAND ${CMAKE_COMMAND} -E create_symlink memext ${CMAKE_BINARY_DIR}/stencil${points}p)
    install(FILES ${CMAKE_BINARY_DIR}/stencil${points}p DESTINATION ${CMAKE_INSTALL_BINDIR})
  endforeach()
endif()

# Relocatable: `cmake --install --prefix` may differ from the configured prefix.
file(RELATIVE_PATH MX_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" MX_PC_TO_PREFIX ${MX_PC_TO_PREFIX})
configure_file(cmake/memext.pc.in memext.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/memext.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# find_package(memext) gives memext::memext, the shared library.
include(CMakePackageConfigHelpers)
set(MX_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/memext)
install(TARGETS memext_shared EXPORT memextTargets)
install(EXPORT memextTargets NAMESPACE memext:: DESTINATION ${MX_PACKAGE_DIR})
configure_package_config_file(cmake/memextConfig.cmake.in memextConfig.cmake INSTALL_DESTINATION ${MX_PACKAGE_DIR})
write_basic_package_version_file(memextConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/memextConfig.cmake ${CMAKE_BINARY_DIR}/memextConfigVersion.cmake DESTINATION ${MX_PACKAGE_DIR})
