# Compiler-wide settings: ccache, lld, warnings, sanitizers.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
find_program(ORTC_CCACHE ccache)
if(ORTC_CCACHE)
  # Paths relative to the sources: a clone elsewhere finds the objects of this one.
  set(_launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${ORTC_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${_launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${_launcher})
endif()

find_program(ORTC_LLD NAMES ld.lld-22 ld.lld)
if(ORTC_LLD)
  add_link_options(-fuse-ld=lld)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ looks for plain `ld.lld`: show it the folder of the versioned one.
    get_filename_component(_lld "${ORTC_LLD}" REALPATH)
    get_filename_component(_lld_dir "${_lld}" DIRECTORY)
    add_link_options(-B${_lld_dir})
  endif()
endif()
# One link at a time: memory is the limit on small machines.
set_property(GLOBAL PROPERTY JOB_POOLS ortc_link=1)
set(CMAKE_JOB_POOL_LINK ortc_link)

add_compile_options(-Wall -Wextra -Wno-unused-parameter $<$<COMPILE_LANGUAGE:CXX>:-fvisibility-inlines-hidden>)
if(ORTC_WERROR)
  add_compile_options(-Werror)
endif()
if(ORTC_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "ORTC_FUZZ needs clang's libFuzzer but the compiler is ${CMAKE_CXX_COMPILER_ID}; use cmake --preset fuzz")
  endif()
  if(ORTC_COUNT_LINES)
    add_compile_options(-fprofile-instr-generate -fcoverage-mapping)
    add_link_options(-fprofile-instr-generate)
  elseif(NOT ORTC_SANITIZE)
    set(ORTC_SANITIZE "address;undefined")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link) # coverage, which programs without libFuzzer ignore
  add_custom_target(ortc_fuzzers)
  add_custom_target(ortc_hostile DEPENDS ortc_fuzzers) # everything that reads files of others
endif()
if(ORTC_SANITIZE)
  string(REPLACE ";" "," _sanitizers "${ORTC_SANITIZE}")
  add_compile_options(-fsanitize=${_sanitizers} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${_sanitizers})
endif()
