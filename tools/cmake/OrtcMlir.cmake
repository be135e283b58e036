# Finds MLIR 22 and sets up TableGen.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
find_package(MLIR 22.1 REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)
find_package(LLD REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/lld)
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)
separate_arguments(_llvm_definitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")

# Everything that includes MLIR headers links this.
add_library(ortc_mlir INTERFACE)
target_include_directories(ortc_mlir SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
target_compile_definitions(ortc_mlir INTERFACE ${_llvm_definitions})
target_link_libraries(ortc_mlir INTERFACE MLIR LLVM)
