#!/usr/bin/env bash
# Lints all Python by ruff.toml: run-lint.sh SOURCE BUILD. Exit status 77 without ruff, which tools/setup --all installs (1 with ORTC_NO_SKIP in
# the environment).
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
set -euo pipefail
ruff=$2/venv/bin/ruff
if [ ! -x "$ruff" ]; then
  echo "SKIPPED: there is no ruff in $2/venv; tools/setup --all installs it"
  [ -z "${ORTC_NO_SKIP:-}" ] || exit 1
  exit 77
fi
"$ruff" check --no-cache --extend-exclude 'build*' "$1"
