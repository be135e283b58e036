# Sourced by the tests of packages, and by those that open pages.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# skip REASON
skip() {
  echo "SKIPPED: $*"
  [ -z "${ORTC_NO_SKIP:-}" ] || exit 1
  exit 77
}

# need PROGRAM PACKAGE...: ends the test as skipped when a program is missing.
need() {
  local missing=
  while [ $# -gt 0 ]; do
    command -v "$1" >/dev/null || missing+=" $1 ($2)"
    shift 2
  done
  [ -z "$missing" ] || skip "there is no$missing"
}

# find_browser: sets `browser`; ends the test as skipped without one.
find_browser() {
  for browser in chromium-headless-shell chromium google-chrome; do
    ! command -v "$browser" >/dev/null || return 0
  done
  skip "no chromium-headless-shell, chromium or google-chrome is installed (tools/setup --all); the page was not opened"
}

# need_wasm: ends the test as skipped without node, or where the package was not built.
need_wasm() {
  need node nodejs
  [ -f "$build/js/ortc.wasm" ] || skip "there is no compiler for WebAssembly"
  [ -f "$build/js/training.wasm" ] || skip "there is no C++ library for WebAssembly: libc++-22-dev-wasm32"
}

# use_wine FOLDER: programs run with settings in FOLDER. Wine's own libraries are used where they lie: a folder of Windows
# with copies of them would take 700 MB and ten seconds.
use_wine() {
  mkdir -p "$1"
  echo disable >"$1/.update-timestamp"
  export WINEPREFIX=$1 WINEBOOTSTRAPMODE=1 WINEDEBUG=-all WINEDLLOVERRIDES='mscoree=d;mshtml=d'
}

# block SECTION LANGUAGE: the lines of such blocks in a section of docs/packages.md.
block() {
  awk -v section="## $1" -v begin="\`\`\`$2" '
    /^## / { isHere = $0 == section }
    /^```$/ { isCode = 0 }
    isCode { print; count++ }
    isHere && $0 == begin { isCode = 1 }
    END { exit !count }' "$source/docs/packages.md"
}

fail() {
  echo "FAILED: $*" >&2
  exit 1
}
