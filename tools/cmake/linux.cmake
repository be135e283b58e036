# Toolchain file: Linux on ORTC_ARCHITECTURE (aarch64, armv7 or riscv64), by clang with Debian's headers and libraries for building across.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
set(_triple_aarch64 aarch64-linux-gnu)
set(_triple_armv7 arm-linux-gnueabihf)
set(_triple_riscv64 riscv64-linux-gnu)
if(NOT DEFINED _triple_${ORTC_ARCHITECTURE})
  message(FATAL_ERROR "ORTC_ARCHITECTURE is '${ORTC_ARCHITECTURE}' but must be aarch64, armv7 or riscv64")
endif()
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ORTC_ARCHITECTURE)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${ORTC_ARCHITECTURE})
foreach(_language C CXX)
  set(CMAKE_${_language}_COMPILER_TARGET ${_triple_${ORTC_ARCHITECTURE}})
  if(ORTC_ARCHITECTURE STREQUAL armv7) # what code for `--target armv7` needs, too
    set(CMAKE_${_language}_FLAGS_INIT "-march=armv7-a -mfpu=neon-vfpv4")
  endif()
endforeach()
set(CMAKE_C_COMPILER clang-22)
set(CMAKE_CXX_COMPILER clang++-22)
# Nothing of a C++ library has to be there.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-fuse-ld=lld -static-libstdc++ -static-libgcc")
# Programs are this machine's, libraries the other's; packages of only headers are for both.
set(CMAKE_FIND_ROOT_PATH ${CMAKE_PREFIX_PATH})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE BOTH)
