#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ringmaster::diagnosis {

/// The text after `key` in the line, or none.
std::optional<std::string_view> after(std::string_view line, std::string_view key);
/// The word after `key`, up to a blank or comma.
std::string_view word_after(std::string_view line, std::string_view key);
/// The number after `key`. `base`: 10 or 16.
std::optional<uint64_t> number_after(std::string_view line, std::string_view key, int base = 10);
/// The number with which the text starts.
std::optional<uint64_t> leading_number(std::string_view text, int base = 10);
std::string_view trimmed(std::string_view text);

/// Takes the first line off the text, without its line feed and carriage return. False: the text is empty.
bool take_line(std::string_view& text, std::string_view& line);

} // namespace ringmaster::diagnosis
