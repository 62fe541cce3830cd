#pragma once

#include "tools/options/tool_command.hpp"

#include <string>
#include <string_view>

namespace ringmaster {

/// What help shows of a command: the options that are used most (--help), or all of them and its notes (--help-all).
enum class help_extent : bool { common, all };

/// The text's paragraphs, filled to the width of the terminal; empty lines and lines that start with a blank stay as
/// they are. Ends with a new line.
std::string filled(std::string_view text);

/// "  NAME   purpose", with the purpose at column `width` + 4, filled; on the next line where the name is longer.
std::string listed(std::string_view name, std::string_view purpose, size_t width);

/// The length of the longest name.
size_t width_of(const std::vector<tool_command>& commands);

/// The help of a command with these options, and these commands below it. The layout is the one that help2man reads.
std::string help_text(const option_table& table, const std::vector<tool_command>& below, help_extent extent);

} // namespace ringmaster
