# What `cmake --install` leaves, in components: runtime (shared libraries), dev (what programs are built with), java (ortc.jar and
# its libraries), tool (ortc), sources (the runtime for firmware, which is built with the rest of a program).
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/ortc)
set(_doc_dir ${CMAKE_INSTALL_DATAROOTDIR}/doc)
# The prefix, from where .pc files lie.
file(RELATIVE_PATH ORTC_UP /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" ORTC_UP ${ORTC_UP})

# Libraries and components of find_package, by one name. What pkg-config knows them by has `ortc` in front.
foreach(_library IN LISTS ORTC_RUNTIME_LIBRARIES)
  string(REGEX MATCH "^([a-z]+)=(.*)$" _match "${_library}")
  set(_name ${CMAKE_MATCH_1})
  set(ORTC_DESCRIPTION "${CMAKE_MATCH_2}")
  set_target_properties(ortc_${_name} PROPERTIES EXPORT_NAME ${_name})
  set_target_properties(ortc_${_name}_static PROPERTIES EXPORT_NAME ${_name}_static)
  install(TARGETS ortc_${_name} ortc_${_name}_static EXPORT ortc-libraries
          RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime # what Windows has
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT dev
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev
          INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  get_target_property(ORTC_LIBRARY ortc_${_name} OUTPUT_NAME)
  string(REPLACE _ - ORTC_PACKAGE ${ORTC_LIBRARY})
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

if(TARGET ortc_jni)
  # Where Debian's Java looks for libraries, below those that it needs.
  install(TARGETS ortc_jni ortc_jni_training LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/jni COMPONENT java)
  install(FILES ${PROJECT_BINARY_DIR}/lib/ortc.jar DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/java COMPONENT java)
endif()

if(TARGET ortc)
  # LLVM's packages have libMLIR in a folder of their own.
  set_target_properties(ortc PROPERTIES EXPORT_NAME tool INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS ortc EXPORT ortc-tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tool)
  install(EXPORT ortc-tool NAMESPACE ortc:: DESTINATION ${_cmake_dir} COMPONENT tool)
  if(TARGET ortc_pages)
    set(_pages ${PROJECT_BINARY_DIR}/pages)
    install(DIRECTORY ${_pages}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT tool)
    install(FILES ${_pages}/completions/ortc.bash DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/bash-completion/completions RENAME ortc COMPONENT tool)
    install(FILES ${_pages}/completions/ortc.zsh DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/zsh/site-functions RENAME _ortc COMPONENT tool)
    install(FILES ${_pages}/completions/ortc.fish DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/fish/vendor_completions.d COMPONENT tool)
  endif()
  if(TARGET ortc_js) # relative to the program, which looks for it (tools/ortc/WasmRuntime.cpp)
    install(FILES ${PROJECT_BINARY_DIR}/js/libortc_wasm.a DESTINATION ${CMAKE_INSTALL_BINDIR}/../lib/ortc/wasm32 COMPONENT tool)
  endif()
endif()

# The paths are those of this tree, so that the commands of docs/devices.md run in either.
foreach(_folder IN ITEMS runtime/include runtime/freestanding runtime/src runtime/slots runtime/delta runtime/parameters runtime/verify docs/examples/firmware)
  get_filename_component(_parent ${_folder} DIRECTORY)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${_folder} DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/ortc/${_parent} COMPONENT sources
          FILES_MATCHING PATTERN *.c PATTERN *.cpp PATTERN *.h PATTERN *.hpp PATTERN *.ld)
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/ortc COMPONENT sources)

# Documents, by Debian's names. Each package has its licence; in the tool is code of others, too.
foreach(_component_package IN ITEMS runtime:libortc1 dev:libortc-dev tool:ortc)
  if(_component_package MATCHES tool AND NOT TARGET ortc)
    continue()
  endif()
  string(REPLACE : ";" _pair ${_component_package})
  list(GET _pair 0 _component)
  list(GET _pair 1 _package)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${_doc_dir}/${_package} RENAME copyright COMPONENT ${_component})
endforeach()
foreach(_package IN ITEMS libcli11-dev nlohmann-json3-dev liblld-22-dev)
  if(NOT TARGET ortc)
    break()
  endif()
  install(FILES /usr/share/doc/${_package}/copyright DESTINATION ${_doc_dir}/ortc RENAME copyright.${_package} COMPONENT tool OPTIONAL)
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/docs/runtime-api.md DESTINATION ${_doc_dir}/libortc-dev COMPONENT dev)
install(FILES ${PROJECT_SOURCE_DIR}/docs/examples/train_loop.c ${PROJECT_SOURCE_DIR}/docs/examples/train_loop.cpp
        DESTINATION ${_doc_dir}/libortc-dev/examples COMPONENT dev)
