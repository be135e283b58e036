# One helper per kind of target. Headers are included by their path from the root.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# ortc_library(NAME SOURCES ... [DEPENDS ...] [MLIR]): a static library.
function(ortc_library name)
  cmake_parse_arguments(ARG "MLIR" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}
                                            ${PROJECT_SOURCE_DIR}/runtime/include)
  target_link_libraries(${name} PUBLIC ${ARG_DEPENDS})
  set_property(GLOBAL APPEND PROPERTY ORTC_LIBRARIES ${name})
  if(SKBUILD) # for the size of the wheel
    target_compile_options(${name} PRIVATE -Os -ffunction-sections -fdata-sections)
  endif()
  if(ARG_MLIR)
    target_link_libraries(${name} PUBLIC ortc_mlir)
    ortc_use_headers(${name} ortc_mlir_headers)
  else()
    ortc_use_headers(${name} ortc_std_headers)
  endif()
endfunction()

# ortc_list_libraries(): build/libraries.txt for tools/scripts/check-libraries, a line each: name, file, the libraries it names.
function(ortc_list_libraries)
  get_property(_libraries GLOBAL PROPERTY ORTC_LIBRARIES)
  set(_lines "")
  foreach(_library IN LISTS _libraries)
    string(APPEND _lines "${_library} $<TARGET_FILE:${_library}> $<JOIN:$<TARGET_PROPERTY:${_library},LINK_LIBRARIES>, >\n")
  endforeach()
  file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/libraries.txt CONTENT "${_lines}")
endfunction()

# ortc_dialect(NAME PREFIX SOURCES ... [DEPENDS ...]): dialects/NAME with TableGen from <PREFIX>Ops.td.
# Optional generated parts: ENUMS (enum declarations), ATTRIBUTES, TYPES, INTERFACES (file stems).
function(ortc_dialect name prefix)
  cmake_parse_arguments(ARG "ENUMS;ATTRIBUTES;TYPES" "" "SOURCES;DEPENDS;INTERFACES" ${ARGN})
  set(LLVM_TARGET_DEFINITIONS ${prefix}Ops.td)
  set(_flags -I ${PROJECT_SOURCE_DIR} -I ${MLIR_INCLUDE_DIRS})
  mlir_tablegen(${prefix}Ops.h.inc -gen-op-decls ${_flags})
  mlir_tablegen(${prefix}Ops.cpp.inc -gen-op-defs ${_flags})
  mlir_tablegen(${prefix}Dialect.h.inc -gen-dialect-decls -dialect=${name} ${_flags})
  mlir_tablegen(${prefix}Dialect.cpp.inc -gen-dialect-defs -dialect=${name} ${_flags})
  if(ARG_ENUMS)
    mlir_tablegen(${prefix}Enums.h.inc -gen-enum-decls ${_flags})
    mlir_tablegen(${prefix}Enums.cpp.inc -gen-enum-defs ${_flags})
  endif()
  if(ARG_ATTRIBUTES)
    mlir_tablegen(${prefix}Attributes.h.inc -gen-attrdef-decls -attrdefs-dialect=${name} ${_flags})
    mlir_tablegen(${prefix}Attributes.cpp.inc -gen-attrdef-defs -attrdefs-dialect=${name} ${_flags})
  endif()
  if(ARG_TYPES)
    mlir_tablegen(${prefix}Types.h.inc -gen-typedef-decls -typedefs-dialect=${name} ${_flags})
    mlir_tablegen(${prefix}Types.cpp.inc -gen-typedef-defs -typedefs-dialect=${name} ${_flags})
  endif()
  foreach(stem IN LISTS ARG_INTERFACES)
    set(LLVM_TARGET_DEFINITIONS ${stem}.td)
    mlir_tablegen(${stem}.h.inc -gen-op-interface-decls ${_flags})
    mlir_tablegen(${stem}.cpp.inc -gen-op-interface-defs ${_flags})
  endforeach()
  add_public_tablegen_target(ortc_${name}_inc)
  set_property(GLOBAL APPEND PROPERTY ORTC_DIALECTS "${name}:${prefix}")  # ortc-opt registers them all
  ortc_library(ortc_dialect_${name} SOURCES ${ARG_SOURCES} DEPENDS ${ARG_DEPENDS} MLIR)
  add_dependencies(ortc_dialect_${name} ortc_${name}_inc)
  foreach(dependency IN LISTS ARG_DEPENDS)
    if(dependency MATCHES "^ortc_dialect_(.*)$")
      add_dependencies(ortc_${name}_inc ortc_${CMAKE_MATCH_1}_inc)
    endif()
  endforeach()
endfunction()

# ortc_pass_library(STAGE SOURCES ... [DEPENDS ...]): compiler/passes/STAGE with its Passes.td.
function(ortc_pass_library stage)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  set(LLVM_TARGET_DEFINITIONS Passes.td)
  mlir_tablegen(Passes.h.inc -gen-pass-decls -name=Ortc_${stage} -I ${PROJECT_SOURCE_DIR} -I ${MLIR_INCLUDE_DIRS})
  add_public_tablegen_target(ortc_passes_${stage}_inc)
  ortc_library(ortc_passes_${stage} SOURCES ${ARG_SOURCES} DEPENDS ${ARG_DEPENDS} MLIR)
  add_dependencies(ortc_passes_${stage} ortc_passes_${stage}_inc)
  set_property(GLOBAL APPEND PROPERTY ORTC_PASS_STAGES ${stage})  # ortc-opt registers them all
endfunction()

# ortc_sweep(TEST ...): tests that repeat what others show, on more models, shapes or draws. tools/test leaves them out, tools/sweep
# runs them.
function(ortc_sweep)
  set_property(TEST ${ARGN} APPEND PROPERTY LABELS sweep)
endfunction()

# ortc_gpu_set(TEST ...): tests that together show what GPUs compute, on the emulator (docs/testing.md): `ctest -L gpu-set` runs them.
function(ortc_gpu_set)
  set_property(TEST ${ARGN} APPEND PROPERTY LABELS gpu-set)
endfunction()

# ortc_gtest(NAME SOURCES ... DEPENDS ... [MLIR] [HOSTILE] [PLAIN] [SWEEP]): a GoogleTest program, run by ctest as one test. Skipped when a
# case was. MLIR ones include its headers.
# HOSTILE ones are run with sanitizers, too: the build with ORTC_FUZZ has them in its target ortc_hostile and under the label
# `hostile`. They and PLAIN ones, whose time is spent in libraries or other programs, are compiled without optimisation: half the time.
# Of SWEEP ones, the cases with "Sweep" in their names are a test NAME-sweep (ortc_sweep).
function(ortc_gtest name)
  cmake_parse_arguments(ARG "MLIR;HOSTILE;PLAIN;SWEEP" "" "SOURCES;DEPENDS" ${ARGN})
  find_package(GTest REQUIRED)
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} ortc_test_main)
  target_compile_definitions(${name} PRIVATE ORTC_TEST_DATA="${PROJECT_SOURCE_DIR}/test")
  if(ARG_SWEEP)
    add_test(NAME ${name} COMMAND ${name} --gtest_filter=-*Sweep*)
    add_test(NAME ${name}-sweep COMMAND ${name} --gtest_filter=*Sweep*)
    set_tests_properties(${name}-sweep PROPERTIES SKIP_RETURN_CODE 77)
    ortc_sweep(${name}-sweep)
  else()
    add_test(NAME ${name} COMMAND ${name})
  endif()
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77)
  if(ARG_HOSTILE OR ARG_PLAIN)
    target_compile_options(${name} PRIVATE -O0)
    if(ARG_MLIR)
      ortc_use_headers(${name} ortc_mlir_test_headers)
    else()
      ortc_use_headers(${name} ortc_test_headers)
    endif()
  elseif(ARG_MLIR)
    ortc_use_headers(${name} ortc_mlir_headers)
  else()
    ortc_use_headers(${name} ortc_std_headers)
  endif()
  if(ARG_HOSTILE AND ORTC_FUZZ)
    add_dependencies(ortc_hostile ${name})
    set_tests_properties(${name} PROPERTIES LABELS hostile)
  endif()
endfunction()

# ortc_fuzzer(NAME FUNCTION SOURCES ... DEPENDS ... [UNCHECKED ...]): the program fuzz-NAME of libFuzzer, around a function of
# test/fuzz/Target.h. UNCHECKED sources come before the libraries, built so that every hash is right.
function(ortc_fuzzer name function)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;UNCHECKED" ${ARGN})
  add_executable(fuzz-${name} ${PROJECT_SOURCE_DIR}/test/fuzz/EntryPoint.cpp ${ARG_SOURCES})
  target_include_directories(fuzz-${name} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
  target_compile_definitions(fuzz-${name} PRIVATE ORTC_FUZZ_TARGET=${function})
  target_link_libraries(fuzz-${name} PRIVATE ${ARG_UNCHECKED} ${ARG_DEPENDS})
  target_link_options(fuzz-${name} PRIVATE -fsanitize=fuzzer)
  add_dependencies(ortc_fuzzers fuzz-${name})
  add_test(NAME fuzz-${name} COMMAND ${PROJECT_SOURCE_DIR}/test/fuzz/run-target ${PROJECT_BINARY_DIR} ${name} 30)
  set_tests_properties(fuzz-${name} PROPERTIES LABELS hostile TIMEOUT 300)
endfunction()

# ortc_opt_extension(FUNCTION HEADER LIBRARY): ortc-opt calls `FUNCTION(mlir::DialectRegistry &)`, declared in HEADER.
# For what is neither a dialect nor a pass stage: external models, passes with their own registration.
function(ortc_opt_extension call header library)
  set_property(GLOBAL APPEND PROPERTY ORTC_OPT_EXTENSIONS "${call}|${header}|${library}")
endfunction()

# ortc_lit_suite(NAME): the lit tests of this folder, run by ctest as one test.
function(ortc_lit_suite name)
  find_program(ORTC_LIT NAMES lit-22 lit llvm-lit HINTS /usr/lib/llvm-22/bin REQUIRED)
  find_program(ORTC_FILECHECK NAMES FileCheck-22 FileCheck HINTS /usr/lib/llvm-22/bin REQUIRED)
  configure_file(${PROJECT_SOURCE_DIR}/test/lit.site.cfg.py.in ${PROJECT_BINARY_DIR}/test/lit.site.cfg.py @ONLY)
  add_test(NAME ${name} COMMAND ${ORTC_LIT} -sv ${CMAKE_CURRENT_BINARY_DIR})
  # lit keeps one file of test times for all suites: two at a time would tear it.
  set_tests_properties(${name} PROPERTIES RESOURCE_LOCK lit-times)
endfunction()
