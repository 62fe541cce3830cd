#pragma once

#include "tools/options/tool_command.hpp"

namespace ringmaster {

/// `ringmaster destroy N`: ends communicators that somebody has left behind.
tool_command destroy_command();

} // namespace ringmaster
