# Toolchain file: the runtime for Windows on x86-64, by clang with the headers and libraries of mingw-w64.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
foreach(_language C CXX)
  set(CMAKE_${_language}_COMPILER_TARGET x86_64-w64-windows-gnu)
endforeach()
set(CMAKE_C_COMPILER clang-22)
set(CMAKE_CXX_COMPILER clang++-22)
set(CMAKE_RC_COMPILER llvm-rc-22) # CMake wants one
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE BOTH)
