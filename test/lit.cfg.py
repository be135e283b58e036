# How lit runs the tests: every .mlir and .test file is a shell script in its RUN lines.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import os

import lit.formats

config.name = "ortc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.join(config.ortc_source_dir, "test")
config.test_exec_root = os.path.join(config.ortc_build_dir, "test")
# %s, %t and %S are lit's own; %inputs is the folder of a test's data.
config.substitutions.append(("%inputs", "%S/Inputs"))
config.substitutions.append((r"\bFileCheck\b", config.filecheck))
config.environment["PATH"] = os.pathsep.join(
    [os.path.join(config.ortc_build_dir, "bin"), os.path.dirname(config.filecheck), os.environ["PATH"]])
