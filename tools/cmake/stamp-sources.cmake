# Writes a header with a digest of files: cmake -DOUTPUT=FILE -DSOURCES=A;B -P stamp-sources.cmake.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
set(_all "")
foreach(_source IN LISTS SOURCES)
  file(SHA256 ${_source} _digest)
  string(APPEND _all ${_digest})
endforeach()
string(SHA256 _digest "${_all}")
file(WRITE ${OUTPUT} "// Made by tools/cmake/stamp-sources.cmake.
#pragma once
namespace ortc::backends {
/// A digest of the sources between LLVM IR and code.
inline constexpr char kEmissionStamp[] = \"${_digest}\";
} // namespace ortc::backends
")
