# Writes man pages and completions: cmake -DORTC=PROGRAM -DOUT=FOLDER -P WritePages.cmake
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
function(write_output file)
  execute_process(COMMAND ${ORTC} ${ARGN} OUTPUT_FILE ${OUT}/${file} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${OUT})
file(MAKE_DIRECTORY ${OUT}/man1 ${OUT}/completions)
write_output(man1/ortc.1 flags --man)
execute_process(COMMAND ${ORTC} flags --json OUTPUT_VARIABLE _json COMMAND_ERROR_IS_FATAL ANY)
string(JSON _last LENGTH ${_json} commands)
math(EXPR _last "${_last} - 1")
foreach(_number RANGE ${_last})
  string(JSON _name GET ${_json} commands ${_number} name)
  write_output(man1/ortc-${_name}.1 flags ${_name} --man)
endforeach()
foreach(_shell IN ITEMS bash zsh fish)
  write_output(completions/ortc.${_shell} completion ${_shell})
endforeach()
