#pragma once

#include "tools/options/tool_command.hpp"

namespace ringmaster {

/// `ringmaster simulate train`: a step of training in virtual time.
tool_command train_command();

} // namespace ringmaster
