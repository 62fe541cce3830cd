#pragma once

#include "tools/options/tool_command.hpp"

namespace ringmaster {

/// `ringmaster train`: trains the models that are registered (trained_models.hpp). Or the same as a program of its own.
tool_command train_for_real_command(const std::string& program = {});

} // namespace ringmaster
