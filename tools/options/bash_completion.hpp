#pragma once

#include "tools/options/program.hpp"

#include <string>

namespace ringmaster {

/// A script for bash (4.4 or later) that completes the program's commands, their options and the options' values. It
/// offers the options that --help shows, and all of them once a letter after the dashes is typed.
std::string bash_completion(const program& of);
/// The same for a program that is a single command.
std::string bash_completion(const tool_command& of);

} // namespace ringmaster
