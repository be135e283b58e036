# `cpack --config build/CPackConfig.cmake`: Debian packages, one for each component of OrtcInstall.cmake.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "ortc developers <ortc@example.org>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_COMPONENTS_ALL runtime dev)
if(TARGET ortc)
  list(APPEND CPACK_COMPONENTS_ALL tool)
endif()
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libortc1)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "C runtime that trains models which ortc has compiled
 Shared libraries: the runtime, a pool of threads, checkpoints in flash, signatures, and access to GPUs.")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME libortc-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_COMPONENT_DEV_DEPENDS runtime)
set(CPACK_COMPONENT_DEV_DESCRIPTION "C runtime that trains models which ortc has compiled, development files
 Headers for C and C++, static libraries, files for CMake and pkg-config.")

set(CPACK_DEBIAN_TOOL_PACKAGE_NAME ortc)
set(CPACK_DEBIAN_TOOL_PACKAGE_SECTION devel)
# Of LLVM's two libraries it names libmlir-22, which needs the other, and libllvm22 only at times: two packages have that file.
set(CPACK_DEBIAN_TOOL_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_TOOL_PACKAGE_SUGGESTS libortc-dev)
set(CPACK_COMPONENT_TOOL_DESCRIPTION "compiles ONNX models into their own training step, ahead of time
 The command line: train, run, eval, predict, export and more.")
include(CPack)
