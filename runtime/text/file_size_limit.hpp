#pragma once

#include <cstdint>
#include <string>

namespace ringmaster {

// The system's limit on the size of the files that a process writes, as `ulimit -f` and shared login hosts set it.

/// In bytes; UINT64_MAX: there is none.
uint64_t file_size_limit();

/// A write beyond the limit fails with EFBIG from now on, in place of a signal (SIGXFSZ) that ends the process. A
/// handler of the program's own stays.
void survive_file_size_limit();

/// For EFBIG, where there is a limit: ": the limit on the size of a file is 1000 KiB for this process; ..."; else
/// empty.
std::string file_size_advice(int code);

/// What std::strerror says, and of a file that is too large for the limit also the limit and how to raise it.
std::string file_problem_text(int code);

/// The same limit for people: "1000 KiB".
std::string file_size_limit_text();

} // namespace ringmaster
