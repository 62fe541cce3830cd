#include "planner/failures/failure_question.hpp"

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace ringmaster::training {

std::string_view name_of(recovery how) {
  constexpr std::array<std::string_view, 4> names{"restart", "wait", "smaller", "shrink"};
  return names[static_cast<size_t>(how)];
}

caf::error check(const failure_question& asked) {
  struct time {
    const char* what;
    double s;
    bool may_be_0;
  };
  const auto& x = asked;
  if (x.gpus == 0 || x.gpus_per_host == 0)
    return invalid("a job needs at least one GPU, and a host, too");
  if (x.copies == 0 || x.gpus % x.copies != 0)
    return invalid(fmt::format("{} GPUs do not divide among {} data-parallel copies of a model", x.gpus, x.copies));
  for (auto& [what, s, may_be_0] : std::array{
         time{"a GPU's mean time to failure", x.gpu_mttf_s, false},
         time{"a checkpoint's write", x.checkpoint_write_s, true}, time{"a restart", x.restart_s, true},
         time{"the detection of a failure", x.detection_s, true}, time{"a host's repair", x.repair_s, false},
         time{"the joining of a host", x.join_s, true}, time{"a step", x.step_s, false},
         time{"the run", x.run_s, false}, time{"the interval of checkpoints", x.interval_s.value_or(1), false}})
    if (!std::isfinite(s) || s < 0 || (s == 0 && !may_be_0))
      return invalid(fmt::format("{} is {} s: it must be {}, and finite", what, s,
                                 may_be_0 ? "0 or more" : "more than 0"));
  if (x.detection_s > x.restart_s)
    return invalid(fmt::format("a restart of {} s has the detection of the failure in it, which takes {} s: it must "
                               "be as long at least",
                               x.restart_s, x.detection_s));
  return caf::none;
}

uint32_t hosts_of(const failure_question& asked) {
  ensure(asked.gpus > 0 && asked.gpus_per_host > 0, "a job has GPUs, and a host, too");
  return (asked.gpus + asked.gpus_per_host - 1) / asked.gpus_per_host;
}

double job_mttf_s(const failure_question& asked) {
  return asked.gpu_mttf_s / asked.gpus;
}

double host_mttf_s(const failure_question& asked) {
  return job_mttf_s(asked) * hosts_of(asked);
}

uint32_t copies_with(const failure_question& asked, recovery how, uint32_t down) {
  if (how == recovery::restart || down <= asked.spares)
    return asked.copies;
  const auto hosts = hosts_of(asked), lacking = std::min(down - asked.spares, hosts);
  const auto left = how == recovery::wait ? 0 : static_cast<uint32_t>(uint64_t{hosts - lacking} * asked.copies / hosts);
  ensure(left <= asked.copies, "failures leave no more copies than there were");
  return left;
}

uint32_t hosts_in_use(const failure_question& asked, uint32_t copies) {
  ensure(copies <= asked.copies, "no more copies train than the job has");
  return static_cast<uint32_t>((uint64_t{copies} * hosts_of(asked) + asked.copies - 1) / asked.copies);
}

bool survives(const failure_question& asked, uint32_t copies) {
  return !asked.sharded && copies > 1 && hosts_in_use(asked, copies) > 1;
}

} // namespace ringmaster::training
