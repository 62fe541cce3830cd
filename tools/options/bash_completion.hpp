#pragma once

#include "tools/options/program.hpp"

#include <string>

namespace ringmaster {

/// A script for bash that completes the program's commands, their options, and the words and files that these take. It
/// needs nothing but bash 4.4.
std::string bash_completion(const program& of);
/// The same of a program that is one command.
std::string bash_completion(const tool_command& of);

} // namespace ringmaster
