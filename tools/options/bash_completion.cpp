#include "tools/options/bash_completion.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

namespace ringmaster {

namespace {

/// The fixed part of the script. {0}: the functions' name, {1}: the program's. `COMP_WORDS` has "--name=value" as three
/// words.
constexpr auto frame = R"sh(
_{0}() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} option= command= kind= word listed rest=0
  _{0}_command
  if [ "$rest" -gt 0 ]; then
    _{0}_rest
    return
  fi
  if [ "$current" = = ]; then
    option=${{COMP_WORDS[COMP_CWORD - 1]}}
    current=
  elif [ "${{COMP_WORDS[COMP_CWORD - 1]}}" = = ]; then
    option=${{COMP_WORDS[COMP_CWORD - 2]}}
  else
    option=${{COMP_WORDS[COMP_CWORD - 1]}}
  fi
  for word in "${{COMP_WORDS[@]:1}}"; do
    [ -n "$kind" ] || kind=$(_{0}_value "$command" "$option|$word")
  done
  [ -n "$kind" ] || kind=$(_{0}_value "$command" "$option")
  if [ -z "$kind" ]; then
    case $current in
      - | --) kind="words $(_{0}_options "$command|common")" ;;
      -*) kind="words $(_{0}_options "$command")" ;;
      *) kind=$(_{0}_value "$command" '') ;;
    esac
  fi
  case $kind in
    words*)
      listed=${{current%"${{current##*,}}"}} # of a list, the part before its last comma
      mapfile -t COMPREPLY < <(compgen -P "$listed" -W "${{kind#words}}" -- "${{current##*,}}")
      case $current in
        */* | .* | '~'*) # may be the name of a file instead
          mapfile -t -O "${{#COMPREPLY[@]}}" COMPREPLY < <(compgen -f -- "$current")
          kind=file
          ;;
      esac
      ;;
    file) mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
    directory) mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
    command) mapfile -t COMPREPLY < <(compgen -c -f -- "$current" | sort -u) ;;
    *) COMPREPLY=() ;;
  esac
  case $kind in file | directory) compopt -o filenames 2>/dev/null ;; esac
  case ${{COMPREPLY[0]-}} in *=) compopt -o nospace 2>/dev/null ;; esac
  return 0
}}

complete -F _{0} {1}
)sh";

/// Sets `command` to one or two of the words.
constexpr auto find_command = R"sh(
_{0}_command() {{
  [ "$COMP_CWORD" -gt 1 ] || return
  command=${{COMP_WORDS[1]}}
  if [ "$COMP_CWORD" -gt 2 ]; then
    case "$command ${{COMP_WORDS[2]}}" in
      {1}) command+=" ${{COMP_WORDS[2]}}" ;;
    esac
  fi
}}
)sh";

/// For a program that is one command and runs another program: sets `rest` to the index of that program, if it is on
/// the line. Its words are completed by its own completion; `_command_offset` is a function of bash-completion.
constexpr auto find_rest = R"sh(
_{0}_command() {{
  local i
  command={1}
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case ${{COMP_WORDS[i]}} in
      --) ((i += 1)); break ;;
      =) ((i += 1)) ;;
      -*) [ -n "$(_{0}_value "$command" "${{COMP_WORDS[i]}}")" ] && [ "${{COMP_WORDS[i + 1]}}" != = ] && ((i += 1)) ;;
      *) break ;;
    esac
  done
  [ "${{COMP_WORDS[i - 1]}}" != -- ] && [ "$i" -ge "$COMP_CWORD" ] || rest=$i
}}

_{0}_rest() {{
  if declare -F _command_offset >/dev/null; then
    _command_offset "$rest"
  elif [ "$rest" -eq "$COMP_CWORD" ]; then
    mapfile -t COMPREPLY < <(compgen -c -f -- "$current" | sort -u)
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  fi
}}
)sh";

std::string quoted(std::string_view text) {
  std::string result{'\''};
  for (auto x : text)
    result += x == '\'' ? std::string{"'\\''"} : std::string{x};
  return result + '\'';
}

std::string words_kind(const std::vector<std::string>& words) {
  return fmt::format("words {}", fmt::join(words, " "));
}

/// "words ring tree", "file", "any".
std::string kind_of(const option& x) {
  switch (x.offered()) {
    case option::offer::words: return words_kind(x.words());
    case option::offer::file: return "file";
    case option::offer::directory: return "directory";
    case option::offer::nothing: break;
  }
  return "any";
}

/// The lines of two case statements: the options of each command, and the kinds of their values.
class cases {
public:
  void add(const tool_command& x, const std::string& name) {
    auto table = x.table();
    std::vector<std::string> names, common, without_dash;
    for (auto& each : table.groups())
      for (auto& known : each.options) {
        names.insert(names.end(), known.names().begin(), known.names().end());
        if (known.is_common())
          common.push_back(known.name());
        if (!known.is_flag())
          add_value(name, known, kind_of(known));
      }
    for (auto& key : table.configuration_keys())
      names.push_back(fmt::format("--{}=", key));
    names.insert(names.end(), {"--version", "--help", "--help-all"});
    common.insert(common.end(), {"--help", "--help-all"});
    add_options(name, names);
    add_options(name + "|common", table.has_common() ? common : names);
    for (auto& inner : x.below)
      without_dash.push_back(inner.last_word());
    auto* free = table.free();
    if (free != nullptr)
      without_dash.insert(without_dash.end(), free->words().begin(), free->words().end());
    if (!without_dash.empty())
      values_ += line(name + "|", words_kind(without_dash));
    else if (free != nullptr)
      values_ += line(name + "|", x.program.empty() ? "command" : kind_of(*free)); // a program runs others
    for (auto& inner : x.below)
      add(inner, inner.name);
  }

  void add_words(const std::string& place, const std::vector<std::string>& words) {
    values_ += line(place, words_kind(words));
  }

  std::string functions(const std::string& name) const {
    return fmt::format("\n# COMMAND: its options. COMMAND|common: those that --help shows.\n_{0}_options() {{\n  case "
                       "$1 in\n{1}  esac\n}}\n"
                       "\n# COMMAND OPTION: the kind of its value; nothing if it has none.\n"
                       "_{0}_value() {{\n  case $1\\|$2 in\n{2}  esac\n}}\n",
                       name, options_, values_);
  }

private:
  void add_options(const std::string& place, const std::vector<std::string>& names) {
    options_ += fmt::format("    {}) echo {} ;;\n", quoted(place), quoted(fmt::format("{}", fmt::join(names, " "))));
  }

  static std::string line(const std::string& place, const std::string& kind) {
    return fmt::format("    {}) echo {} ;;\n", quoted(place), quoted(kind));
  }

  void add_value(const std::string& name, const option& x, const std::string& kind) {
    for (auto& each : x.names()) {
      for (auto& [word, words] : x.words_beside())
        values_ += line(name + "|" + each + "|" + word, words_kind(words));
      values_ += line(name + "|" + each, kind);
    }
  }

  std::string options_, values_;
};

std::string function_name(std::string program) {
  std::replace_if(
    program.begin(), program.end(), [](unsigned char x) { return std::isalnum(x) == 0; }, '_');
  return program;
}

std::string head_of(const std::string& program) {
  return fmt::format("# bash completion for {}, made from the tables of its options.\n", program);
}

} // namespace

std::string bash_completion(const program& of) {
  cases all;
  std::vector<std::string> names, pairs;
  for (auto& x : of.commands()) {
    names.push_back(x.name);
    all.add(x, x.name);
    for (auto& inner : x.below)
      pairs.push_back(quoted(inner.name));
  }
  for (auto& x : of.own_commands()) {
    names.push_back(x.name);
    all.add(x, x.name);
  }
  all.add_words("help|help", names);
  names.insert(names.end(), {"--help", "--help-all", "--version"});
  all.add_words("|", names);
  all.add_words(fmt::format("|{}", of.name()), names);
  auto name = function_name(of.name());
  return head_of(of.name()) + all.functions(name)
         + fmt::format(fmt::runtime(find_command), name,
                       pairs.empty() ? "''" : fmt::format("{}", fmt::join(pairs, " | ")))
         + fmt::format(frame, name, of.name());
}

std::string bash_completion(const tool_command& of) {
  cases all;
  all.add(of, of.name);
  auto name = function_name(of.name);
  return head_of(of.name) + all.functions(name) + fmt::format(find_rest, name, of.name)
         + fmt::format(frame, name, of.name);
}

} // namespace ringmaster
