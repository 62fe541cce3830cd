#pragma once

#include "tools/options/tool_command.hpp"

namespace ringmaster {

/// `ringmaster puzzles`: judges the reader's programs in examples/puzzles/. With a number its status is 0 where the
/// program trains the whole model, and 1 where it is wrong or not written yet; of all it only tells.
tool_command puzzles_command();

} // namespace ringmaster
