#pragma once

#include "diagnosis/findings/diagnosis.hpp"

#include <optional>
#include <string>

namespace ringmaster::diagnosis {

/// Where a rank's program was, according to its stacks.
struct stack_place {
  fault_kind kind = fault_kind::never_called; ///< in_data_loader, in_checkpoint, communicator_creation, hung_in_kernel,
                                              ///< or never_called: anywhere else.
  std::string text;                           ///< "its main thread is in _next_data (dataloader.py:1298)"
};

/// Reads the main thread's stack; none: there is no stack of it.
std::optional<stack_place> place_of(const job_records& job, const rank_records& rank);

/// The innermost frames of the user's own program: without those of PyTorch and of Python's library, if there are
/// others. At most `count`.
call_stack own_frames(const job_records& job, const call_stack& stack, size_t count);

} // namespace ringmaster::diagnosis
