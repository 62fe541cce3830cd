#pragma once

#include "tools/options/program.hpp"

#include <string>

namespace ringmaster {

/// The program's manual page, section 1, for man: what help says of it and of all its commands.
std::string man_page(const program& of);
/// The same of a program that is one command.
std::string man_page(const tool_command& of);

} // namespace ringmaster
