#pragma once

#include <cstdint>
#include <string>

namespace ringmaster {

// The operating system's limit on the size of files that a process writes, which `ulimit -f` sets.

/// In bytes; UINT64_MAX: unlimited.
uint64_t file_size_limit();

/// From now on a write beyond the limit fails with EFBIG instead of killing the process with SIGXFSZ. A signal handler
/// that the program installed stays.
void survive_file_size_limit();

/// For EFBIG if there is a limit: ": the limit on the size of a file is 1000 KiB for this process; ..."; else
/// empty.
std::string file_size_advice(int code);

/// The text of std::strerror; for a file beyond the limit also the limit and how to raise it.
std::string file_problem_text(int code);

/// The limit as text: "1000 KiB".
std::string file_size_limit_text();

} // namespace ringmaster
