// The commands about files: export, inspect, delta, merge, sign, verify.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/ortc/flags/Flags.h"

namespace ortc::tool {

static FlagRow makeOutput(const char *sentence) {
  return {.name = "output",
          .letter = 'o',
          .value = "OUT.safetensors",
          .type = FlagType::File,
          .isNeeded = true,
          .writes = true,
          .sentence = sentence};
}

CommandRow describeExport() {
  return {
      .name = "export",
      .sentence = "Write the ONNX graph with trained weights, for inference",
      .arguments = {{.name = "DIR",
                     .type = FlagType::Folder,
                     .sentence = "the artifact, or a file MODEL.onnx that was exported for training"}},
      .groups = {
          {"Weights",
           {{.name = "load",
             .value = "FILE.safetensors|DIR",
             .type = FlagType::File,
             .sentence = "Take the weights of a checkpoint, or PEFT adapters",
             .text = "Default: the weights in the artifact."},
            {.name = "weights",
             .value = "ema|swa",
             .type = FlagType::Choice,
             .words = "ema swa",
             .sentence = "Take the averages in place of the parameters",
             .text = "As for `eval`."}}},
          {"Output",
           {{.name = "output",
             .letter = 'o',
             .value = "TRAINED.onnx",
             .type = FlagType::File,
             .writes = true,
             .sentence = "Write the model into this file, adapters merged",
             .text =
                 R"(Adapters of `--lora` are merged into its weights, those of `--base` into the numbers that its integers
stand for. With `--qat`, weights become int8 and a DequantizeLinear, and the other operands of their layers go through
QuantizeLinear and DequantizeLinear (below 8 bits, a Clip in front); a training step must have seen ranges. On x86 without
VNNI, integer kernels of ONNX Runtime saturate unless its session has `session.x64quantprecision` 1; of one that stands on
the left of a product they refuse to run then, and ORT_ENABLE_BASIC does without them. A weight that several layers read
is written for each of them. Needed unless `--adapter` is given.)"},
            {.name = "adapter",
             .value = "DIR",
             .type = FlagType::Folder,
             .sentence = "Write only the adapters, in the two files of PEFT",
             .text =
                 R"(`adapter_config.json` and `adapter_model.safetensors`, which `peft.PeftModel.from_pretrained` reads.
Other tensors that were trained are not in them.)"},
            {.name = "training",
             .sentence = "Write the graph as it was compiled, for training",
             .text = "Everything that the graph does in training, it does there, too."},
            quietFlag()}}}};
}

CommandRow describeInspect() {
  return {.name = "inspect",
          .sentence = "Print entries, bindings, tensors, memory, targets and digests",
          .arguments = {{.name = "DIR", .type = FlagType::Folder, .sentence = "the artifact"}},
          .groups = {}};
}

CommandRow describeDelta() {
  return {
      .name = "delta",
      .sentence = "Write what a training has changed, for ortc merge --base",
      .arguments = {{.name = "BASE",
                     .type = FlagType::File,
                     .sentence = "what it began with: a checkpoint, or an artifact"},
                    {.name = "NEW", .type = FlagType::File, .sentence = "the checkpoint that it has saved"}},
      .groups = {
          {"Output",
           {makeOutput("Write the delta into this file"),
            {.name = "int8",
             .sentence = "Round the differences to integers: a quarter of the bytes",
             .text =
                 R"(To the nearest of 255 multiples of a scale, which each 256 of them share: an error of at most half
a scale.)"},
            quietFlag()}}}};
}

CommandRow describeMerge() {
  return {
      .name = "merge",
      .sentence = "Write the weighted mean of checkpoints, or of deltas",
      .arguments = {{.name = "FILE",
                     .type = FlagType::File,
                     .sentence = "two checkpoints or more; with --base, deltas",
                     .repeats = true}},
      .groups =
          {{"Merge",
            {makeOutput("Write the checkpoint into this file"),
             {.name = "weights",
              .value = "W1,W2,...",
              .type = FlagType::Text,
              .sentence = "Weight the files by these numbers; default: all alike",
              .text =
                  R"(A number from 0 for each file, such as the samples it was trained on; only their ratios count.)"},
             {.name = "base",
              .value = "BASE",
              .type = FlagType::File,
              .sentence = "Add the mean of deltas to this checkpoint",
              .text = "A checkpoint, or an artifact with its initial weights."},
             quietFlag()}}},
      .example = "ortc merge a.safetensors b.safetensors --weights 120,80 -o mean.safetensors"};
}

CommandRow describeSign() {
  return {
      .name = "sign",
      .sentence = "Sign an artifact, for devices that check who made it",
      .arguments = {{.name = "DIR",
                     .type = FlagType::Folder,
                     .sentence = "the artifact; not needed with --new-key",
                     .isNeeded = false}},
      .groups =
          {{"Key",
            {{.name = "key",
              .value = "FILE",
              .type = FlagType::File,
              .sentence = "Sign with this private key",
              .text =
                  R"(PEM as `openssl genpkey -algorithm ed25519` writes it (PKCS#8), or its 32 bytes in hexadecimal
digits or base64. Anything else is refused, also a key with a password.)"},
             {.name = "new-key",
              .value = "FILE",
              .type = FlagType::File,
              .sentence = "Make a key first: FILE, and FILE.pub with its public half",
              .text = R"(Only its owner may read FILE; a file that is there is never replaced (status 2).)"},
             quietFlag()}}},
      .example = "ortc sign --new-key signing.key && ortc sign artifacts/digits --key signing.key"};
}

CommandRow describeVerify() {
  return {
      .name = "verify",
      .sentence = "Check every digest and every section, and a signature",
      .arguments = {{.name = "DIR", .type = FlagType::Folder, .sentence = "the artifact"}},
      .groups = {
          {"Signature",
           {{.name = "public-key",
             .value = "FILE",
             .type = FlagType::File,
             .sentence = "Check that this key has signed the artifact",
             .text =
                 R"(PEM as `openssl pkey -pubout` writes it (SPKI), or its 32 bytes in hexadecimal digits or base64. No
signature, one that is cut, or one by another key is refused (status 2); damage that a hash finds is a failure (status 1),
as without the flag.)"},
            quietFlag()}}}};
}

} // namespace ortc::tool
