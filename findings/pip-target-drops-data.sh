#!/usr/bin/env bash
# pip install --target and files of a wheel beside its packages (pip 25.3): what the wheel puts below its data's lib/ is dropped without a word,
# though a plain install has it. Files below share/ and the scripts come along, and RECORD keeps paths that are wrong there
# (../../bin/NAME for a program at bin/NAME), so that importlib.metadata locates them two folders up.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -q --disable-pip-version-check pip==25.3
venv/bin/python - <<'PY'
import base64, hashlib, zipfile
files = {
    "sample.py": "",
    "sample-1.0.data/scripts/sample": "#!python\n",
    "sample-1.0.data/data/lib/sample/a.txt": "a",
    "sample-1.0.data/data/share/sample/b.txt": "b",
    "sample-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: sample\nVersion: 1.0\n",
    "sample-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
}
with zipfile.ZipFile("sample-1.0-py3-none-any.whl", "w") as wheel:
    record = ""
    for name, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(text)}\n"
        wheel.writestr(name, text)
    wheel.writestr("sample-1.0.dist-info/RECORD", record + "sample-1.0.dist-info/RECORD,,\n")
PY
pip=(venv/bin/pip install -q --disable-pip-version-check --no-index)
"${pip[@]}" --target beside ./sample-1.0-py3-none-any.whl
"${pip[@]}" ./sample-1.0-py3-none-any.whl
echo "pip $(venv/bin/pip --version | cut -d' ' -f2)"
(cd beside && find . -name '*.txt' -o -name sample -type f) | sort | tee found
test -f venv/lib/sample/a.txt       # a plain install has it
test ! -e beside/lib/sample/a.txt   # --target has not
test -f beside/share/sample/b.txt
test -f beside/bin/sample
grep -q '^\.\./\.\./bin/sample,' beside/sample-1.0.dist-info/RECORD
located=$(PYTHONPATH=beside venv/bin/python -c '
import importlib.metadata
print(next(file.locate() for file in importlib.metadata.distribution("sample").files if file.name == "sample"))')
test ! -e "$located"
echo "as stated"
