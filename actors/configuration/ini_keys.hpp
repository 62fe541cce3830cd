#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ringmaster {

/// The keys that an INI text of CAF's kind sets, as "section.key", in order and as often as they are set; without
/// a section they begin with "global.". What CAF's parser returns does not tell a key that is there twice, nor the
/// section `[a]` from the value `a={...}`. The text must be one that CAF's parser accepts.
std::vector<std::string> ini_keys(std::string_view text);

} // namespace ringmaster
