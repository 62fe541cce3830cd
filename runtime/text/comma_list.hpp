#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ringmaster {

/// What stands between a text's commas, from the first to the last, empty parts too: "a,,b" has three, "" one. They are
/// views into the text.
std::vector<std::string_view> comma_list(std::string_view text);

/// "red, green or blue".
std::string choice_text(const std::vector<std::string>& words);

} // namespace ringmaster
