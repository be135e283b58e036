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

# Reading MLIR's headers is most of the time that a source takes: they are read once. Not where ccache serves other clones: what is
# made from precompiled headers is of one folder. With sanitizers every source is compiled for one build alone.
set(ORTC_MLIR_HEADERS OFF)
if(ORTC_FUZZ OR NOT ORTC_CCACHE)
  set(ORTC_MLIR_HEADERS ON)
endif()
# ortc_precompile_mlir(NAME [OPTION ...]): the headers, compiled with options that their users share.
function(ortc_precompile_mlir name)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/${name}.cpp CONTENT "// Its precompiled header is what counts.\n") # written once
  add_library(${name} OBJECT EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/${name}.cpp)
  target_link_libraries(${name} PRIVATE ortc_mlir)
  target_compile_options(${name} PRIVATE ${ARGN})
  target_precompile_headers(${name} PRIVATE
    <mlir/Dialect/Arith/IR/Arith.h> <mlir/Dialect/Func/IR/FuncOps.h> <mlir/Dialect/Math/IR/Math.h> <mlir/IR/Builders.h>
    <mlir/IR/BuiltinOps.h> <mlir/IR/PatternMatch.h> <mlir/Interfaces/InferTypeOpInterface.h>
    <mlir/Interfaces/SideEffectInterfaces.h> <mlir/Pass/Pass.h> <functional> <map> <string> <vector>)
endfunction()
if(ORTC_MLIR_HEADERS)
  ortc_precompile_mlir(ortc_mlir_headers)
  ortc_precompile_mlir(ortc_mlir_headers_plain -O0)
endif()
