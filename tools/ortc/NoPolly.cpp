// Debian's LLVM has Polly in its passes, and its archive in a package of its own. The linker's optimizer, which asks
// for it, never runs: code of models is no bitcode.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <llvm/Plugins/PassPlugin.h>

llvm::PassPluginLibraryInfo getPollyPluginInfo();
llvm::PassPluginLibraryInfo getPollyPluginInfo() { return {}; }
