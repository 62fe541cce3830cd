#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ringmaster {

/// The word that was probably meant: the one with the smallest edit distance from `word`, at most 2; else the one that
/// has a part more or less: "--data" for "--data-ranks". Empty if there is none, or several.
std::string nearest_word(std::string_view word, const std::vector<std::string>& words);

} // namespace ringmaster
