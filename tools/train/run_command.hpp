#pragma once

#include "tools/options/tool_command.hpp"

namespace ringmaster {

/// `ringmaster train`: trains the models that are registered (trained_models.hpp). The same command can be a program.
tool_command train_for_real_command(const std::string& program = {});

} // namespace ringmaster
