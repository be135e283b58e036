"""Names of other packages, over ortc: a script changes its import.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
