#!/usr/bin/env bash
# Cases of a file of this folder, with the package of a build: run-test.sh SOURCE BUILD NAME
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
set -euo pipefail
source=$(realpath "$1")
build=$(realpath "$2")
. "$source/test/packages/common.sh"
python=$build/venv/bin/python
compgen -G "$build/python/ortc/_runtime*.so" >/dev/null || skip "there is no Python package in the build (tools/setup installs what it needs)"
"$python" -c 'import numpy' 2>/dev/null || skip "there is no numpy in build/venv (tools/setup)"
export ORTC_TEST_SOURCE=$source ORTC_TEST_BUILD=$build ORTC_COMPILER=$build/bin/ortc PYTHONPATH=$build/python:$source/test/python
cd "$source/test/bindings/python"
[ -f "$3_test.py" ] # discover finds nothing without it, and passes
log=$(mktemp)
trap 'rm -f "$log"' EXIT
"$python" -W error -B -m unittest discover -v -p "$3_test.py" 2>&1 | tee "$log"
# Cases that say why they were left out.
! reason=$(sed -n "s/.*[.][.][.] skipped '\(.*\)'$/\1/p" "$log" | grep .) || skip "$reason"
