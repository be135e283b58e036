# Headers that are read once for many sources.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Reading headers of others is most of the time that a source takes. Not where ccache serves other clones: what is made from
# precompiled headers is of one folder. With sanitizers every source is compiled for only one build.
set(_default OFF)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND (ORTC_FUZZ OR NOT ORTC_CCACHE))
  set(_default ON)
endif()
option(ORTC_PRECOMPILE "Read headers of others once, not in every source" ${_default})

# ortc_headers(NAME HEADERS ... [DEPENDS ...] [GENERATED ...] [OPTIONS ...]): headers, compiled with options that their users share.
# GENERATED are targets that write some of them.
function(ortc_headers name)
  cmake_parse_arguments(ARG "" "" "HEADERS;DEPENDS;GENERATED;OPTIONS" ${ARGN})
  if(NOT ORTC_PRECOMPILE)
    return()
  endif()
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/${name}.cpp CONTENT "// Its precompiled header is what counts.\n") # written once
  add_library(${name} OBJECT EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/${name}.cpp)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS})
  target_compile_options(${name} PRIVATE ${ARG_OPTIONS})
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
  if(ARG_GENERATED)
    add_dependencies(${name} ${ARG_GENERATED})
  endif()
endfunction()

# ortc_use_headers(TARGET NAME): compiles TARGET with the headers NAME.
function(ortc_use_headers target name)
  if(ORTC_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM ${name})
    target_compile_options(${target} PRIVATE -fPIC) # as the headers were; programs are -fPIE otherwise
  endif()
endfunction()

# Of libraries (ortc_library).
set(ORTC_STD_HEADERS <algorithm> <filesystem> <fstream> <functional> <map> <memory> <numeric> <optional> <set> <sstream> <string>
  <unordered_map> <variant> <vector>)
ortc_headers(ortc_std_headers HEADERS ${ORTC_STD_HEADERS})
if(ORTC_BUILD_COMPILER)
  set(_mlir
    <mlir/Dialect/Arith/IR/Arith.h> <mlir/Dialect/Func/IR/FuncOps.h> <mlir/Dialect/LLVMIR/LLVMDialect.h>
    <mlir/Dialect/Math/IR/Math.h> <mlir/Dialect/MemRef/IR/MemRef.h> <mlir/Dialect/SCF/IR/SCF.h>
    <mlir/Dialect/Vector/IR/VectorOps.h> <mlir/IR/Builders.h> <mlir/IR/BuiltinOps.h> <mlir/IR/PatternMatch.h>
    <mlir/Interfaces/InferTypeOpInterface.h> <mlir/Interfaces/SideEffectInterfaces.h> <mlir/Pass/Pass.h> <functional> <map>
    <string> <vector> ${PROJECT_SOURCE_DIR}/dialects/nn/NnDialect.h) # the dialect that most sources are about
  ortc_headers(ortc_mlir_headers HEADERS ${_mlir} DEPENDS ortc_mlir GENERATED ortc_nn_inc)
endif()
# Of tests that are compiled without optimisation (ortc_gtest).
if(ORTC_BUILD_TESTS)
  find_package(GTest REQUIRED)
  find_package(nlohmann_json 3.10 REQUIRED)
  ortc_headers(ortc_test_headers HEADERS ${ORTC_STD_HEADERS} <gtest/gtest.h> <nlohmann/json.hpp>
               DEPENDS GTest::gtest nlohmann_json::nlohmann_json OPTIONS -O0)
  if(ORTC_BUILD_COMPILER)
    ortc_headers(ortc_mlir_test_headers HEADERS ${_mlir} <gtest/gtest.h>
                 DEPENDS ortc_mlir GTest::gtest GENERATED ortc_nn_inc OPTIONS -O0)
  endif()
endif()
