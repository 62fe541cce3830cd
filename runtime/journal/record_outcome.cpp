#include "runtime/journal/record_outcome.hpp"

namespace ringmaster {

std::optional<gpu_sim::Status> outcome_of(const proto::Record& record) {
  switch (record.event_case()) {
    case proto::Record::kCallsRefused:
    case proto::Record::kCommunicatorRefused:
    case proto::Record::kCommunicatorAborted: return gpu_sim::FAILED;
    case proto::Record::kCommandEnded:
      return record.command_ended().error().empty() ? gpu_sim::SUCCESS : gpu_sim::FAILED;
    default: return std::nullopt;
  }
}

} // namespace ringmaster
