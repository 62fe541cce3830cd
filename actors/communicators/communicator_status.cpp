// What a COMMUNICATOR says of itself and its members.
#include "actors/communicators/communicator.hpp"

#include "actors/calls/answers.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ringmaster {

gpu_sim::GetCommStatusResponse communicator_state::status() const {
  gpu_sim::GetCommStatusResponse result;
  bool in_flight = !operations().idle() || epochs_->changing();
  auto error = !error_ && state() == epoch_change::phase::aborted ? epochs_->end_error() : error_;
  if (!error)
    error = missing_results();
  result.set_status(in_flight ? gpu_sim::IN_PROGRESS : error ? gpu_sim::FAILED : gpu_sim::SUCCESS);
  if (!in_flight && error)
    set_error_in(result, error);
  result.set_asyncerror(epochs_->async_error());
  result.set_ended(epochs_->ending());
  result.set_operationsinflight(static_cast<uint32_t>(operations().size()));
  result.set_controlmessages(control_messages_);
  result.set_epoch(epochs_->opened().value);
  for (auto& x : *epochs_->ranks_in(epochs_->opened()))
    *result.add_devices() = x.metadata;
  return result;
}

void communicator_state::begin_batch(bool by_host) {
  if (!outcome_is_due_) {
    error_ = {};
    epochs_->batch_began(by_host);
  }
  outcome_is_due_ = outcome_is_due_ || by_host;
}

gpu_sim::GetCommStatusResponse communicator_state::tell_outcome() {
  auto result = status();
  outcome_is_due_ = outcome_is_due_ && result.status() == gpu_sim::IN_PROGRESS;
  return result;
}

communicator_view communicator_state::view() const {
  return {
    *epochs_, *watch_,
    *desk_,   [this](device_id device, sequence_number sequence) { return shared_memory_->has_come(device, sequence); },
    now(),    outbox_->unix_ns()};
}

proto::CommunicatorStatus communicator_state::whole_status() const {
  auto result = status_of(view());
  auto latest = status();
  result.set_comm_id(options.id.value);
  result.set_policy(options.policy);
  result.set_deterministic(options.deterministic);
  result.set_status(latest.status());
  result.set_error(latest.error());
  result.set_operations_ended(ended_);
  result.set_operations_failed(failed_);
  if (operations().in_flight().empty() && ended_ + failed_ > 0)
    result.set_quiet_ns(static_cast<uint64_t>((now() - ended_at_).count()) + 1);
  for (auto& x : traffic_.rows(now())) {
    auto& route = *result.add_routes();
    route.set_name(x.route);
    route.set_bytes(x.bytes);
    route.set_bytes_per_s(x.bytes_per_s);
  }
  return result;
}

/// SUCCESS would say that every rank holds the results.
caf::error communicator_state::missing_results() const {
  if (epochs_->without_results().empty())
    return {};
  std::vector<std::string> ranks;
  for (size_t rank = 0; rank < epochs_->ranks().size(); ++rank)
    if (auto& x = epochs_->ranks()[rank]; epochs_->without_results().count(x.id()) != 0)
      ranks.push_back(fmt::format("rank {} ({})", rank, text_of(x.metadata)));
  return make_error(errc::device_lost,
                    fmt::format("the latest operations have ended, but {} took the place of one that was lost with its "
                                "results; all other ranks hold theirs",
                                fmt::join(ranks, ", ")));
}

std::string communicator_state::explain() const {
  auto& queue = operations().in_flight();
  if (queue.empty() && !epochs_->changing())
    return operations().idle()
             ? "nothing is in flight"
             : fmt::format("{} calls wait for GroupEnd on communicator {}", operations().waiting(), options.id.value);
  const auto* op = queue.empty() ? nullptr : &queue.front();
  std::vector<std::string> ranks;
  auto seen = view();
  for (auto& x : epochs_->ranks())
    ranks.push_back(fmt::format("rank {} ({}) {}", ranks.size(), text_of(x.metadata), doing_of(seen, x, op)));
  auto first = op == nullptr ? std::string{"its devices change"} : fmt::format("first is #{}", op->sequence);
  return fmt::format("{} in flight on communicator {}, epoch {}; {}: {}", counted(queue.size(), "operation"),
                     options.id.value, epoch(), first, fmt::join(ranks, ", "));
}

} // namespace ringmaster
