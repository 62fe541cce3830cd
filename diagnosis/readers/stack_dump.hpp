#pragma once

#include "diagnosis/readers/dump_tree.hpp"
#include "diagnosis/readers/file_evidence.hpp"

#include <string_view>

namespace ringmaster::diagnosis {

/// Reads the text of `py-spy dump`, of one process or of several one after the other. A process's rank is in a line
/// before it ("rank 3"), or in its command line ("--rank 3"); or its process id is known from a log. Returns the number
/// of processes.
size_t read_stack_dump(std::string_view text, file_evidence& to);

/// The same for `py-spy dump --json`: a list of threads. Returns whether the value is one.
bool read_stack_dump(const parsed_dump& dump, file_evidence& to);

} // namespace ringmaster::diagnosis
