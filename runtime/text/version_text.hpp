#pragma once

#include <string>

namespace ringmaster {

/// What --version prints: the program's name with our version, and below it those of what it talks and writes.
std::string version_text(const std::string& program);

} // namespace ringmaster
