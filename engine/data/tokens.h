// Files of tokens: samples are windows of a text, and labels the tokens behind each.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "engine/data/data_source.h"
#include "engine/data/data_spec.h"

namespace ortc::engine {

/// How a file of tokens is read.
struct TokenOptions {
  static constexpr int64_t kMostLength = 1 << 24;
  DataType type = DataType::None; ///< None: what the header says, or uint16
  int64_t length = 0;             ///< of a sample

  /// Keys dtype and seq. `where` begins messages.
  static Status parse(const DataSpec::Options &options, const std::string &where, TokenOptions &result);
};

/// The arrays `tokens` and `label`, of [windows, length] each: the file without a header, or with one of llm.c's.
Status openTokens(const std::string &path, const TokenOptions &options, std::unique_ptr<DataSource> &source);

} // namespace ortc::engine
