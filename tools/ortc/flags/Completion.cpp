// Completions of shells.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/ortc/flags/Completion.h"

#include "support/EditDistance.h"

namespace ortc::tool {
namespace {

/// Calls `visit(flag)` for every flag of a command.
template <typename Visit> void forEachFlag(const Command &command, Visit visit) {
  for (const FlagGroup &group : command.row->groups)
    for (const FlagRow &flag : group.rows)
      visit(flag);
}

std::string join(const std::vector<std::string> &words, const char *escaped = "") {
  std::string text;
  for (const std::string &word : words) {
    text += text.empty() ? "" : " ";
    for (char letter : word)
      text += (std::string_view(escaped).find(letter) != std::string_view::npos ? "\\" : "") +
              std::string(1, letter);
  }
  return text;
}

std::vector<std::string> listNames(const std::vector<Command> &commands) {
  std::vector<std::string> names;
  for (const Command &command : commands)
    names.emplace_back(command.row->name);
  return names;
}

/// 'text' with quotes in it written so that all three shells take them.
std::string quote(const std::string &text) {
  std::string quoted = "'";
  for (char letter : text)
    quoted += letter == '\'' ? "'\\''" : std::string(1, letter);
  return quoted + "'";
}

std::string formatBash(const std::vector<Command> &commands) {
  std::string values, flags;
  for (const Command &command : commands) {
    const std::string name = command.row->name;
    std::vector<std::string> all{"--help"};
    forEachFlag(command, [&](const FlagRow &flag) {
      all.push_back("--" + std::string(flag.name));
      if (flag.type == FlagType::Switch)
        return;
      const std::vector<std::string> words = command.listWords(flag);
      values += "    '" + name + " --" + flag.name + "'" +
                (flag.letter ? " | '" + name + " -" + std::string(1, flag.letter) + "'" : "") + ") " +
                (!words.empty()                  ? "_ortc_words '" + join(words) + "'"
                 : flag.type == FlagType::File   ? "_ortc_files -f"
                 : flag.type == FlagType::Folder ? "_ortc_files -d"
                                                 : "true") +
                "; return ;;\n";
    });
    std::vector<std::string> words;
    for (const ArgumentRow &argument : command.row->arguments)
      for (const std::string &word : splitWords(argument.words))
        words.push_back(word);
    flags += "    " + name + ") flags='" + join(all) + "' words='" + join(words) + "' ;;\n";
  }
  return "# Completions of ortc for bash: source <(ortc completion bash)\n"
         "_ortc_words() { mapfile -t COMPREPLY < <(compgen -W \"$1\" -- \"$word\"); }\n"
         "_ortc_files() { compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen \"$1\" -- "
         "\"$word\"); }\n"
         "_ortc() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} "
         "command=${COMP_WORDS[1]} flags='' words=''\n"
         "  COMPREPLY=()\n"
         "  if [ \"$word\" = = ]; then word=''; elif [ \"$before\" = = ]; then "
         "before=${COMP_WORDS[COMP_CWORD - 2]}; fi\n" // --flag=value is three words
         "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    _ortc_words '" +
         join(listNames(commands)) +
         " --help --version'\n    return\n  fi\n"
         "  case \"$command $before\" in\n" +
         values + "  esac\n  case $command in\n" + flags +
         "  esac\n"
         "  if [ \"$command\" = help ] || [ \"$command\" = flags ]; then\n    words='" +
         join(listNames(commands)) +
         "'\n  fi\n"
         "  case $word in\n"
         "    -*) _ortc_words \"$flags\" ;;\n"
         "    *) if [ -n \"$words\" ]; then _ortc_words \"$words\"; else _ortc_files -f; fi ;;\n"
         "  esac\n"
         "}\n"
         "complete -F _ortc ortc\n";
}

/// Text in a specification of zsh's _arguments.
std::string escapeZsh(const std::string &text) {
  std::string escaped;
  for (char letter : text)
    escaped += (letter == ':' || letter == '[' || letter == ']' || letter == '\\' ? "\\" : "") +
               std::string(1, letter);
  return escaped;
}

std::string formatZshValue(const std::string &name, FlagType type, const std::vector<std::string> &words) {
  return ":" + escapeZsh(name) + ":" +
         (!words.empty()             ? "(" + join(words, ":") + ")"
          : type == FlagType::File   ? "_files"
          : type == FlagType::Folder ? "_files -/"
                                     : " ");
}

std::string formatZsh(const std::vector<Command> &commands) {
  std::string names, cases;
  for (const Command &command : commands) {
    names += "    " + quote(escapeZsh(command.row->name) + ":" + escapeZsh(command.row->sentence)) + "\n";
    cases += "    " + std::string(command.row->name) + ")\n      _arguments '--help[Print help]'";
    forEachFlag(command, [&](const FlagRow &flag) {
      const std::string value =
          flag.type == FlagType::Switch ? "" : formatZshValue(flag.value, flag.type, command.listWords(flag));
      auto add = [&](const std::string &shown) {
        cases += " \\\n        " +
                 quote((flag.repeats ? "*" : "") + shown + "[" + escapeZsh(flag.sentence) + "]" + value);
      };
      add("--" + std::string(flag.name));
      if (flag.letter)
        add("-" + std::string(1, flag.letter));
    });
    for (const ArgumentRow &argument : command.row->arguments) {
      std::vector<std::string> words = splitWords(argument.words);
      if (std::string_view(argument.name) == "COMMAND")
        words = listNames(commands);
      cases += " \\\n        " +
               quote((argument.repeats ? "*" : "") + formatZshValue(argument.name, argument.type, words));
    }
    cases += "\n      ;;\n";
  }
  return "#compdef ortc\n# Completions of ortc for zsh: source <(ortc completion zsh), after compinit\n"
         "_ortc() {\n  local -a commands=(\n" +
         names +
         "  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n    return\n  fi\n"
         "  local command=$words[2]\n  shift words\n  (( CURRENT-- ))\n  case $command in\n" +
         cases +
         "  esac\n}\n"
         "if [ \"$funcstack[1]\" = _ortc ]; then _ortc \"$@\"; else compdef _ortc ortc; fi\n";
}

/// The arguments of `ortc help` and `ortc flags`: a command, and one of its flags.
std::string formatFishNames(const std::string &name, const std::vector<Command> &commands) {
  auto format = [&](const std::string &before, size_t words, const std::vector<std::string> &names) {
    return "complete -c ortc -n '__fish_seen_subcommand_from " + name + before +
           "; and test (count (commandline -opc)) -eq " + std::to_string(words) + "' -f -a " +
           quote(join(names)) + "\n";
  };
  std::string text = format("", 2, listNames(commands));
  for (const Command &command : commands) {
    std::vector<std::string> flags;
    forEachFlag(command, [&](const FlagRow &flag) { flags.emplace_back(flag.name); });
    text += format("; and __fish_seen_subcommand_from " + std::string(command.row->name), 3, flags);
  }
  return text;
}

std::string formatFish(const std::vector<Command> &commands) {
  std::string text = "# Completions of ortc for fish: ortc completion fish | source\n"
                     "complete -c ortc -n __fish_use_subcommand -f\n"
                     "complete -c ortc -n __fish_use_subcommand -l version -d 'Print the version'\n";
  for (const Command &command : commands) {
    const std::string name = command.row->name;
    const std::string condition = "complete -c ortc -n '__fish_seen_subcommand_from " + name + "'";
    text +=
        "complete -c ortc -n __fish_use_subcommand -a " + name + " -d " + quote(command.row->sentence) + "\n";
    text += condition + " -l help -d 'Print help'\n";
    forEachFlag(command, [&](const FlagRow &flag) {
      const std::vector<std::string> words = command.listWords(flag);
      text += condition + " -l " + flag.name + (flag.letter ? " -s " + std::string(1, flag.letter) : "");
      if (!words.empty())
        text += " -x -a " + quote(join(words));
      else if (flag.type == FlagType::File)
        text += " -r -F";
      else if (flag.type == FlagType::Folder)
        text += " -x -a '(__fish_complete_directories)'";
      else if (flag.type != FlagType::Switch)
        text += " -x";
      text += " -d " + quote(flag.sentence) + "\n";
    });
    for (const ArgumentRow &argument : command.row->arguments)
      if (std::string_view(argument.name) == "COMMAND")
        text += formatFishNames(name, commands);
      else if (*argument.words)
        text += condition + " -f -a " + quote(joinLines(argument.words)) + "\n";
  }
  return text;
}

} // namespace

Expected<std::string> formatCompletion(const std::string &shell, const std::vector<Command> &commands) {
  if (shell == "bash")
    return formatBash(commands);
  if (shell == "zsh")
    return formatZsh(commands);
  if (shell == "fish")
    return formatFish(commands);
  return Status::refusal("there are no completions for '" + shell +
                         "'; there are some for bash, zsh and fish" +
                         suggestWord(shell, {"bash", "zsh", "fish"}));
}

} // namespace ortc::tool
