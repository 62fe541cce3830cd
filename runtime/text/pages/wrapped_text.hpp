#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ringmaster {

/// The width of a UTF-8 text: one column for each character.
size_t columns_of(std::string_view text);

/// The text in lines of at most `columns`; a longer word has its own line. All lines but the first are indented.
/// `start`: the column at which the first line continues. Words that start with "%" stay on the line of the word
/// before it. There is no line feed at the end.
std::string wrapped_text(std::string_view text, size_t columns, size_t indent = 0, size_t start = 0);

} // namespace ringmaster
