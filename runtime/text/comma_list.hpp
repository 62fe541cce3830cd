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

} // namespace ringmaster
