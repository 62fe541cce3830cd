#include "diagnosis/findings/next_checks.hpp"

#include <fmt/format.h>

namespace ringmaster::diagnosis {

namespace {

/// Whether the place in the program tells more than the records do.
bool wants_stack(fault_kind x) {
  return x != fault_kind::died && x != fault_kind::in_data_loader && x != fault_kind::in_checkpoint
         && x != fault_kind::other_size && x != fault_kind::other_datatype && x != fault_kind::none;
}

std::string check_of(fault_kind x, const std::string& who) {
  switch (x) {
    case fault_kind::died:
      return fmt::format("Look at the end of the log of {}, and at dmesg of its host: out of memory, Xid, or a signal.",
                         who);
    case fault_kind::other_collective:
    case fault_kind::never_called:
    case fault_kind::other_order:
    case fault_kind::other_group:
    case fault_kind::other_root:
      return "Look for a branch that only some ranks take before this call: a condition on the rank, on data, or on a "
             "loss that is not finite; an exception that is caught; another number of batches.";
    case fault_kind::other_size:
    case fault_kind::other_datatype:
      return "Compare the shapes and types of the tensor on both sides: a last batch that is smaller, a parameter that "
             "one rank has frozen or cast, other buckets.";
    case fault_kind::slow:
      return fmt::format(
        "Measure {}: GPU clocks and throttling (nvidia-smi -q), other processes, its share of the data, "
        "and its links.",
        who);
    case fault_kind::hung_in_kernel:
      return fmt::format("Look at the GPU and the links of {}: nvidia-smi, dmesg for Xid, and its lines NCCL WARN.",
                         who);
    case fault_kind::in_data_loader:
      return "Look at the data loader's workers (py-spy dump of the child processes) and at the storage that they "
             "read.";
    case fault_kind::in_checkpoint:
      return "Look at the storage that the checkpoint goes to, and whether other ranks should wait for it with a "
             "longer "
             "timeout.";
    case fault_kind::communicator_creation:
      return "Every rank must call new_group for every group, in the same order, also for groups that it does not "
             "belong "
             "to; and must reach the others' addresses (NCCL_SOCKET_IFNAME).";
    case fault_kind::no_partner:
      return "Compare the schedule of sends and receives of both ranks: the number of micro-batches, and the order "
             "within batch_isend_irecv.";
    case fault_kind::none: break;
  }
  return {};
}

} // namespace

std::vector<std::string> next_checks(const job_records& job, const diagnosis_result& x) {
  const auto rank = x.root.ranks.front();
  const auto who = ranks_with_hosts(job, {rank});
  auto* records = job.find(rank);
  std::vector<std::string> result;
  if (wants_stack(x.root.kind) && (records == nullptr || records->threads.empty()))
    result.push_back(fmt::format("Take the stack of {}: py-spy dump --pid {}.", who,
                                 records != nullptr && records->pid ? std::to_string(*records->pid) : "PID"));
  if (auto text = check_of(x.root.kind, who); !text.empty())
    result.push_back(std::move(text));
  if (x.root.sure != certainty::certain)
    result.push_back("Collect what is missing (see docs/diagnose.md) and run this again.");
  return result;
}

} // namespace ringmaster::diagnosis
