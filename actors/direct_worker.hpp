#pragma once

#include "messages/interfaces.hpp"
#include "runtime/direct_execution.hpp"

#include <caf/event_based_actor.hpp>

#include <atomic>
#include <memory>
#include <vector>

namespace ringmaster {

/// One operation's data on its way, shared by the workers that move it.
struct direct_job {
  direct_job(direct_operation operation, uint64_t slice_bytes, std::vector<std::shared_ptr<device_memory>> kept)
    : execution(std::move(operation), slice_bytes), memories(std::move(kept)) {}

  direct_execution execution;
  std::vector<std::shared_ptr<device_memory>> memories; ///< Mapped until the end, whoever dies.
  std::atomic<uint32_t> next{0};                        ///< Slice to take.
  std::atomic<uint32_t> done{0};
};

/// Takes slices until there are none left, and gives way between them. Whoever ends the last one tells `owner`.
caf::behavior direct_worker(caf::event_based_actor* self, std::shared_ptr<direct_job> job, communicator_actor owner,
                            uint64_t number);

} // namespace ringmaster
