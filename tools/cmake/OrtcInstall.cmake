# What `cmake --install` leaves, in three components: runtime (shared libraries), dev (what programs are built with), tool (ortc).
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/ortc)
set(_doc_dir ${CMAKE_INSTALL_DATAROOTDIR}/doc)
# The prefix, from where .pc files lie.
file(RELATIVE_PATH ORTC_UP /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" ORTC_UP ${ORTC_UP})

# Libraries and components of find_package, by one name. What pkg-config knows them by has `ortc` in front.
set(_runtime "C runtime that trains models which ortc has compiled")
set(_threads "Pool of threads for sessions of ortc")
set(_slots "Checkpoints of ortc in flash")
set(_verify "Signatures of ortc's artifacts")
set(_cuda "Sessions of ortc on NVIDIA GPUs")
set(_hip "Sessions of ortc on AMD GPUs")
foreach(_name IN ITEMS runtime threads slots verify cuda hip)
  set_target_properties(ortc_${_name} PROPERTIES EXPORT_NAME ${_name})
  set_target_properties(ortc_${_name}_static PROPERTIES EXPORT_NAME ${_name}_static)
  install(TARGETS ortc_${_name} ortc_${_name}_static EXPORT ortc-libraries
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT dev
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev
          INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  get_target_property(ORTC_LIBRARY ortc_${_name} OUTPUT_NAME)
  string(REPLACE _ - ORTC_PACKAGE ${ORTC_LIBRARY})
  set(ORTC_DESCRIPTION ${_${_name}})
  configure_file(${CMAKE_CURRENT_LIST_DIR}/ortc.pc.in ${PROJECT_BINARY_DIR}/${ORTC_PACKAGE}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${ORTC_PACKAGE}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/runtime/include/ortc DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev)
install(EXPORT ortc-libraries NAMESPACE ortc:: DESTINATION ${_cmake_dir} COMPONENT dev)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/ortc-config.cmake.in ${PROJECT_BINARY_DIR}/ortc-config.cmake
  INSTALL_DESTINATION ${_cmake_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ortc-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ortc-config.cmake ${PROJECT_BINARY_DIR}/ortc-config-version.cmake
        DESTINATION ${_cmake_dir} COMPONENT dev)

if(TARGET ortc)
  # LLVM's packages have libMLIR in a folder of their own.
  set_target_properties(ortc PROPERTIES EXPORT_NAME tool INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS ortc EXPORT ortc-tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tool)
  install(EXPORT ortc-tool NAMESPACE ortc:: DESTINATION ${_cmake_dir} COMPONENT tool)
endif()

# Documents, by Debian's names. Each package has its licence; in the tool is code of others, too.
foreach(_component_package IN ITEMS runtime:libortc1 dev:libortc-dev tool:ortc)
  string(REPLACE : ";" _pair ${_component_package})
  list(GET _pair 0 _component)
  list(GET _pair 1 _package)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${_doc_dir}/${_package} RENAME copyright COMPONENT ${_component})
endforeach()
foreach(_package IN ITEMS libcli11-dev nlohmann-json3-dev liblld-22-dev)
  install(FILES /usr/share/doc/${_package}/copyright DESTINATION ${_doc_dir}/ortc RENAME copyright.${_package} COMPONENT tool OPTIONAL)
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/docs/runtime-api.md DESTINATION ${_doc_dir}/libortc-dev COMPONENT dev)
install(FILES ${PROJECT_SOURCE_DIR}/docs/examples/train_loop.c ${PROJECT_SOURCE_DIR}/docs/examples/train_loop.cpp
        DESTINATION ${_doc_dir}/libortc-dev/examples COMPONENT dev)
