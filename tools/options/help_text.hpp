#pragma once

#include "tools/options/tool_command.hpp"

#include <string>
#include <string_view>

namespace ringmaster {

/// Columns of all that help prints.
inline constexpr size_t help_columns = 120;

/// The text's paragraphs, filled to the help's width; a line that begins with a blank, and an empty one, stay as they
/// are. Ends with a new line.
std::string filled(std::string_view text);

/// "  NAME   purpose", with the purpose at column `width` + 4, filled; on the next line where the name is longer.
std::string listed(std::string_view name, std::string_view purpose, size_t width);

/// Of the longest name; and each command with its summary.
size_t width_of(const std::vector<tool_command>& commands);
std::string list_of(const std::vector<tool_command>& commands);

/// What --help prints of a command that takes this and has those below it.
std::string help_text(const option_table& table, const std::vector<tool_command>& below = {});

} // namespace ringmaster
