#include "runtime/epochs/communicator_status.hpp"

#include "messages/wire_ids.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/text/quantity_text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ringmaster {

namespace {

using proto::CommunicatorStatus;

constexpr size_t operations_listed_max = 16;

uint64_t ns(watch::duration x) {
  return static_cast<uint64_t>(std::max<int64_t>(x.count(), 0));
}

CommunicatorStatus::State state_of(const epoch_change& epochs) {
  switch (epochs.state().phase()) {
    case epoch_change::phase::active: return CommunicatorStatus::ACTIVE;
    case epoch_change::phase::quiescing: return CommunicatorStatus::STOPPING;
    case epoch_change::phase::replacing: return CommunicatorStatus::REPLACING;
    case epoch_change::phase::ending: return CommunicatorStatus::ENDING;
    case epoch_change::phase::aborted: break;
  }
  return CommunicatorStatus::ENDED;
}

CommunicatorStatus::Operation::Phase phase_of(const operation& op) {
  using reported = CommunicatorStatus::Operation;
  if (op.state == operation::phase::running)
    return op.attempts == 0 ? reported::QUEUED : reported::RUNNING;
  return op.state == operation::phase::decided ? reported::DECIDED : reported::CANCELLED;
}

/// Whether the device's latest answer is about this operation.
bool is_of(const proto::Progress* said, const operation& op) {
  return said != nullptr && said->sequence() == op.sequence.value;
}

/// Whether the rank has come to a shared-memory operation. Its process may wait for its other ranks before it reports
/// so.
bool has_come(const communicator_view& x, device_id device, const operation& op) {
  if (x.has_come(device, op.sequence))
    return true;
  auto said = x.watched.known(device, x.now).latest;
  return is_of(said, op) && said->has_come() && said->epoch() == x.epochs.state().epoch().value;
}

bool has_done(const communicator_view& x, device_id device, const operation& op) {
  return op.joint ? has_come(x, device, op) : op.finished.count(device) != 0;
}

void describe(const communicator_view& x, const operation& op, CommunicatorStatus::Operation& to) {
  to.set_sequence(op.sequence.value);
  *to.mutable_collective() = op.what();
  to.set_bytes(op.bytes);
  to.set_phase(phase_of(op));
  to.set_age_ns(x.unix_ns - std::min(op.called_ns, x.unix_ns));
  to.set_attempts(op.attempts);
  to.set_joint(op.joint);
  to.set_world_size(op.world_size);
  uint32_t done = 0;
  for (auto& slot : op.slots)
    done += op.attempts > 0 && has_done(x, slot.device, op) ? 1 : 0;
  to.set_ranks_done(done);
}

/// Whether ranks wait for each other in the operation.
bool is_waited_in(const communicator_view& x, const operation* op) {
  return op != nullptr && op->state == operation::phase::running && op->attempts > 0 && !x.epochs.state().is_changing();
}

/// Ranks that have not done their part of it: all others wait for them.
std::vector<uint32_t> missing_in(const communicator_view& x, const operation* op) {
  std::vector<uint32_t> result;
  for (uint32_t rank = 0; is_waited_in(x, op) && rank < x.epochs.members().ranks().size(); ++rank)
    if (!has_done(x, x.epochs.members().ranks()[rank].id(), *op))
      result.push_back(rank);
  return result;
}

/// Ranks that a rank waits for: those of its answer, or, if it has done its part, those that have not.
void describe_waits(const communicator_view& x, const rank_device& rank, const operation* op,
                    const std::vector<uint32_t>& missing, CommunicatorStatus::Rank& to) {
  if (rank.lost || !is_waited_in(x, op))
    return;
  if (has_done(x, rank.id(), *op))
    to.mutable_waits_for()->Assign(missing.begin(), missing.end());
  else if (auto said = x.watched.known(rank.id(), x.now).latest; is_of(said, *op))
    *to.mutable_waits_for() = said->waits_for();
}

void describe(const communicator_view& x, const rank_device& rank, const operation* op,
              const std::vector<uint32_t>& missing, CommunicatorStatus::Rank& to) {
  auto known = x.watched.known(rank.id(), x.now);
  to.set_device_id(rank.id().value);
  to.set_doing(doing_of(x, rank, op));
  to.set_lost(rank.lost);
  describe_waits(x, rank, op, missing, to);
  if (known.latest != nullptr) {
    *to.mutable_latest() = *known.latest;
    to.set_latest_age_ns(ns(known.age));
  }
  to.set_late(known.answers.late);
  to.set_answers(known.answers.answers);
  to.set_silent_ns(ns(known.silent));
  if (const auto* slowness = x.slow.slowness(rank.id()))
    *to.mutable_slow() = *slowness;
}

} // namespace

std::string doing_of(const communicator_view& x, const rank_device& rank, const operation* op) {
  if (rank.lost)
    return x.epochs.leaving().contains(rank.id()) ? "leaves, waiting for a spare" : "lost, waiting for a spare";
  if (!x.epochs.state().has_stopped(rank.id()))
    return "has not stopped for the new epoch";
  if (op == nullptr)
    return x.epochs.state().is_changing() ? "has stopped" : "idle";
  if (op->committed.count(rank.id()) != 0)
    return "done";
  if (op->finished.count(rank.id()) != 0)
    return "finished";
  if (op->joint && op->state == operation::phase::decided)
    return "its data is being moved";
  if (op->joint && has_come(x, rank.id(), *op))
    return "has come to it, waits for the others";
  auto said = x.watched.known(rank.id(), x.now).latest;
  bool older = said != nullptr && said->sequence() != 0 && said->sequence() < op->sequence.value;
  if (said == nullptr || older)
    return op->joint ? "has not come to it" : "no word yet";
  return said->doing();
}

CommunicatorStatus status_of(const communicator_view& x) {
  CommunicatorStatus result;
  auto& queue = x.epochs.operations().in_flight();
  ensure(x.now >= x.watched.last_progress(), "time does not run backwards");
  result.set_epoch(x.epochs.members().latest_epoch().value);
  result.set_state(state_of(x.epochs));
  result.set_async_error(x.epochs.async_error());
  result.set_operations_in_flight(static_cast<uint32_t>(queue.size()));
  result.set_waiting_for_group_end(static_cast<uint32_t>(x.epochs.operations().waiting()));
  for (size_t i = 0; i < std::min(queue.size(), operations_listed_max); ++i)
    describe(x, queue[i], *result.add_operations());
  auto first = queue.empty() ? nullptr : &queue.front();
  auto missing = missing_in(x, first);
  for (auto& rank : x.epochs.members().ranks())
    describe(x, rank, first, missing, *result.add_ranks());
  result.set_open_calls(static_cast<uint32_t>(x.calls.open()));
  for (auto& call : x.calls.waiting(x.epochs.operations().latest().next(), x.now)) {
    auto& waiting = *result.add_waiting_calls();
    waiting.set_waits_for(call.waits_for);
    waiting.set_age_ns(ns(call.age));
  }
  if (!queue.empty() || x.epochs.state().is_changing())
    result.set_still_ns(ns(x.now - x.watched.last_progress()));
  return result;
}

caf::error missing_results(const epoch_change& epochs) {
  auto& without = epochs.operations().batch().without_results();
  if (without.empty())
    return {};
  std::vector<std::string> ranks;
  for (size_t rank = 0; rank < epochs.members().ranks().size(); ++rank)
    if (auto& x = epochs.members().ranks()[rank]; without.count(x.id()) != 0)
      ranks.push_back(fmt::format("rank {} ({})", rank, text_of(x.metadata)));
  return make_error(errc::device_lost,
                    fmt::format("the latest operations have ended, but {} took the place of one that was lost with its "
                                "results; all other ranks hold theirs",
                                fmt::join(ranks, ", ")));
}

std::string explain(const communicator_view& x, communicator_id communicator) {
  auto& operations = x.epochs.operations();
  auto& queue = operations.in_flight();
  if (queue.empty() && !x.epochs.state().is_changing())
    return operations.idle()
             ? "nothing is in flight"
             : fmt::format("{} calls wait for GroupEnd on communicator {}", operations.waiting(), communicator);
  const auto* op = queue.empty() ? nullptr : &queue.front();
  std::vector<std::string> ranks;
  for (auto& rank : x.epochs.members().ranks())
    ranks.push_back(fmt::format("rank {} ({}) {}", ranks.size(), text_of(rank.metadata), doing_of(x, rank, op)));
  const auto first = op == nullptr ? std::string{"its devices change"} : fmt::format("first is #{}", op->sequence);
  return fmt::format("{} in flight on communicator {}, epoch {}; {}: {}", counted(queue.size(), "operation"),
                     communicator, x.epochs.state().epoch(), first, fmt::join(ranks, ", "));
}

} // namespace ringmaster
