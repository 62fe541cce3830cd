#include "diagnosis/findings/next_checks.hpp"

#include <fmt/format.h>

namespace ringmaster::diagnosis {

std::vector<std::string> next_checks(const job_records& job, const diagnosis_result& x) {
  std::vector<std::string> result;
  const auto who = ranks_with_hosts(job, {x.root.ranks.front()});
  auto* records = job.find(x.root.ranks.front());
  const bool has_stack = records != nullptr && !records->threads.empty();
  auto add_stack = [&] {
    if (!has_stack)
      result.push_back(fmt::format("Take the stack of {}: py-spy dump --pid {}.", who,
                                   records != nullptr && records->pid ? std::to_string(*records->pid) : "PID"));
  };
  switch (x.root.kind) {
    case fault_kind::died:
      result.push_back(
        fmt::format("Look at the end of the log of {}, and at dmesg of its host: out of memory, Xid, or a "
                    "signal.",
                    who));
      break;
    case fault_kind::other_collective:
    case fault_kind::never_called:
    case fault_kind::other_order:
    case fault_kind::other_group:
    case fault_kind::other_root:
      add_stack();
      result.push_back(
        "Look for a branch that only some ranks take before this call: a condition on the rank, on data, or "
        "on a loss that is not finite; an exception that is caught; another number of batches.");
      break;
    case fault_kind::other_size:
    case fault_kind::other_datatype:
      result.push_back(
        "Compare the shapes and types of the tensor on both sides: a last batch that is smaller, a parameter "
        "that one rank has frozen or cast, other buckets.");
      break;
    case fault_kind::slow:
      result.push_back(
        fmt::format("Measure {}: GPU clocks and throttling (nvidia-smi -q), other processes, its share of the "
                    "data, and its links.",
                    who));
      add_stack();
      break;
    case fault_kind::hung_in_kernel:
      result.push_back(
        fmt::format("Look at the GPU and the links of {}: nvidia-smi, dmesg for Xid, and its lines NCCL WARN.", who));
      add_stack();
      break;
    case fault_kind::in_data_loader:
      result.push_back(
        "Look at the data loader's workers (py-spy dump of the child processes) and at the storage that they "
        "read.");
      break;
    case fault_kind::in_checkpoint:
      result.push_back(
        "Look at the storage that the checkpoint goes to, and whether other ranks should wait for it with a "
        "longer timeout.");
      break;
    case fault_kind::communicator_creation:
      add_stack();
      result.push_back(
        "Every rank must call new_group for every group, in the same order, also for groups that it does not "
        "belong to; and must reach the others' addresses (NCCL_SOCKET_IFNAME).");
      break;
    case fault_kind::no_partner:
      add_stack();
      result.push_back(
        "Compare the schedule of sends and receives of both ranks: the number of micro-batches, and the order "
        "within batch_isend_irecv.");
      break;
    case fault_kind::none: break;
  }
  if (x.root.sure != certainty::certain)
    result.push_back("Collect what is missing (see docs/diagnose.md) and run this again.");
  return result;
}

} // namespace ringmaster::diagnosis
