#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ringmaster {

/// Columns that a UTF-8 text takes: one a character.
size_t columns_of(std::string_view text);

/// The words of the text, in lines of at most `columns`; a longer word has a line by itself. Further lines are
/// indented. `start`: the column at which the first line continues. A word that starts with "%" stays with the word
/// before it. Ends without a new line.
std::string wrapped_text(std::string_view text, size_t columns, size_t indent = 0, size_t start = 0);

} // namespace ringmaster
