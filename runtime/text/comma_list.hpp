#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ringmaster {

/// The parts between a text's commas, including empty ones: "a,,b" has three, "" has one. They are views into the text.
std::vector<std::string_view> comma_list(std::string_view text);

/// "red, green or blue".
std::string choice_text(const std::vector<std::string>& words);

/// The first `shown` words, and the number of the others: "red, green, ... and 43 more".
std::string shortened_list(const std::vector<std::string>& words, size_t shown);

/// The word that was probably meant: the one with the smallest edit distance from `word`, at most 2; else the one that
/// has a part more or less: "--data" for "--data-ranks". Empty if there is none, or several.
std::string nearest_word(std::string_view word, const std::vector<std::string>& words);

} // namespace ringmaster
