// Recipes: the flags of commands in a TOML file.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A recipe has a table for each command, whose keys are flags without their dashes:
//
//   [train]
//   loss = "mse"
//   freeze = ["embed.*", "head.*"]
//   gradients = true
//
//   [train.binding.single]
//   shape = "batch=1"
//
// A file is checked whole, also the tables of other commands. It becomes arguments in front of those of the command
// line, where each flag that is given there is left out.
#pragma once

#include <string>
#include <vector>

#include "support/Expected.h"
#include "tools/ortc/flags/Flags.h"

namespace ortc::tool {

/// What was given for a flag; the value of a switch is "".
struct GivenFlag {
  const FlagRow *row;
  std::string value;
  size_t line = 0; ///< of a recipe
};

/// The flags that a recipe gives a command.
struct Recipe {
  std::string file;                  ///< empty: there is none
  std::vector<GivenFlag> flags = {}; ///< in the order of the command line that they stand for

  /// "recipe.toml:3: " for a flag that the recipe gives the `number`-th time, from 1, else nothing.
  std::string locate(std::string_view flag, size_t number) const;
};

/// Reads the table of `command`, and of the commands whose flags it shares those flags that its own table does not
/// give. Refuses what is no recipe.
Expected<Recipe> parseRecipe(std::string_view text, const std::string &file, const CommandRow &command);

/// Puts the flags of the file that --config names, if it does, in front of `arguments`, which are those after the
/// command's name. `recipe` gets what was put there.
Status addRecipe(const CommandRow &command, std::vector<std::string> &arguments, Recipe &recipe);

/// The recipe of a command line, without --config and --write-config.
std::string formatRecipe(const CommandRow &command, const std::vector<GivenFlag> &flags);

} // namespace ortc::tool
