#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ringmaster {

/// Which of the words somebody may have meant: the one that becomes `word` with fewest characters put in, left out or
/// changed, two at most; else the one that has a part more, or less: "--data" for "--data-ranks". Empty where there is
/// none, or several.
std::string nearest_word(std::string_view word, const std::vector<std::string>& words);

} // namespace ringmaster
