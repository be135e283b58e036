// Keys of a spec `word:key=value,...`: what each means, what it may be and what it is when not given.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A definition lists its keys in a table. Parser, messages, `--help`, the manifest and the documentation are made
// from it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "support/Expected.h"

namespace ortc {

/// A number, a whole number, a switch or a word. The type of a key is that of its default.
using KeyValue = std::variant<double, int64_t, bool, std::string>;
using KeyValues = std::map<std::string, KeyValue, std::less<>>;

/// What a number may be, in words for messages and as a test.
struct Range {
  const char *text;
  bool (*allows)(double);
};

// Steps compute in float32, which has no larger numbers, and no smaller ones that it can divide by.
extern const Range kNotNegative; ///< 0 to 3.4e38
extern const Range kPositive;    ///< 1.2e-38 to 3.4e38
extern const Range kFraction;    ///< at least 0 and below 1
extern const Range kShare;       ///< 0 to 1
// Of the other types, every value is allowed; of words, those that the key lists; of names, all that are not empty.
extern const Range kWhole, kSwitch, kWord, kName;

/// A key of a flag's SPEC, as in `--optimizer sgd:lr=0.1`.
struct Key {
  const char *name;
  KeyValue initial; ///< when it is not given
  Range range;
  const char *meaning; ///< a phrase, with the unit where there is one
  bool zeroIsAbsent =
      false; ///< of an optimizer: a zero compiles nothing, so that no host can set it to more later
  std::vector<std::string> words = {}; ///< of a word: those that it may be; none: any
  bool isRare = false;                 ///< the manifest says it where it is not the default alone
};

/// Every key of a table with its value, given or not.
class Settings {
public:
  Settings() = default;
  Settings(const std::vector<Key> &keys, const KeyValues &given);

  /// The value of a key of that type, which the table must have.
  double getNumber(std::string_view key) const { return std::get<double>(get(key)); }
  int64_t getInteger(std::string_view key) const { return std::get<int64_t>(get(key)); }
  bool isOn(std::string_view key) const { return std::get<bool>(get(key)); }
  const std::string &getWord(std::string_view key) const { return std::get<std::string>(get(key)); }
  bool has(std::string_view key) const { return values.find(key) != values.end(); }
  const KeyValue &get(std::string_view key) const;

private:
  KeyValues values;
};

/// Reads `key=value,...` by the table. `what` names the spec in messages, e.g. "optimizer 'sgd'".
Expected<KeyValues> parseKeys(std::string_view text, const std::string &what, const std::vector<Key> &keys);

/// The same for what follows a word, if anything does. `contradict`, or null, says why keys do not go together, if so.
Expected<KeyValues> parseSettings(bool hasKeys, std::string_view text, const std::string &what,
                                  const std::vector<Key> &keys, const char *(*contradict)(const Settings &));

/// Parts REGEX:KEY=VALUE,... at the last colon, as a regular expression may have colons of its own: '(?:a|b)'. False
/// where no settings follow it. The colon of `optimizer=onnx:FILE` is none.
bool splitPattern(std::string_view text, std::string_view &regex, std::string_view &keys);
/// Splits `word:rest`; `hasRest` tells `word` from `word:`.
void splitSpec(std::string_view text, std::string_view &word, std::string_view &rest, bool &hasRest);

/// "0.001", "1e-8", "-100", "0": a value as a flag takes it.
std::string formatValue(const KeyValue &value);
/// "word[:key=default,...]", or "word" without keys.
std::string formatSpec(const char *word, const std::vector<Key> &keys);
/// 'text'
std::string quote(std::string_view text);

} // namespace ortc
