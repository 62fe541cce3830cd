#pragma once

#include "diagnosis/readers/file_evidence.hpp"

#include <string_view>

namespace ringmaster::diagnosis {

/// Reads the lines of a job's log that say something about ranks and communicators, in any mixture and with any prefix
/// of a launcher: NCCL_DEBUG=INFO (NCCL 2.12 and later), PyTorch's watchdogs (2.1 and later), and the ends of processes
/// as torchrun and srun report them. Other lines are ignored. Returns the number of lines that were understood.
size_t read_job_log(std::string_view text, file_evidence& to);

} // namespace ringmaster::diagnosis
