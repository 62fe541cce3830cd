#include "runtime/epochs/epoch_change.hpp"

#include "runtime/health/verdict_text.hpp"
#include "runtime/schedule/collective.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

namespace ringmaster {

namespace {

std::string_view name_of(operation::phase x) {
  return x == operation::phase::running ? "running" : x == operation::phase::decided ? "decided" : "cancelled";
}

template <class Devices>
std::string ids_text(const Devices& devices) {
  std::vector<std::string> result;
  for (auto& x : devices)
    result.push_back(fmt::format("0x{:x}", x));
  return fmt::format("[{}]", fmt::join(result, " "));
}

} // namespace

epoch_change::epoch_change(communicator_id owner, proto::FailurePolicy policy, std::vector<rank_device> ranks)
  : owner_(owner), policy_(policy), operations_(owner), members_(std::move(ranks)), verdicts_(owner) {
  check();
}

epoch_change::epoch_change(communicator_id owner, proto::FailurePolicy policy, const recovered_communicator& from)
  : owner_(owner), policy_(policy), operations_(owner), state_(epoch_number{from.epoch.value - 1}),
    members_(from.ranks, epoch_number{from.epoch.value - 1}), verdicts_(owner) {
  ensure(from.epoch > epoch_number{1}, "a communicator that is built again had an epoch");
  operations_.restore(from.operations, from.latest);
  check();
}

epoch_change::decisions epoch_change::resume(const std::vector<std::pair<device_id, std::string>>& lost) {
  decisions out;
  ensure(state_.is_active(), "a communicator that is built again resumes first of all");
  std::string reasons = "the coordinator was restarted";
  for (auto& [device, cause] : lost) {
    ensure(members_.contains(device), "a member that has not come back has a rank");
    proto::Verdict found;
    found.set_evidence(cause);
    const auto reason = finding_of(verdicts_.open(verdict_on({device}, std::move(found))));
    take_rank_of(device, reason);
    losses_.add(reason);
    reasons += "; " + reason;
  }
  if (lost.empty())
    stop_members(out, reasons);
  else
    go_on_without(out, reasons);
  stop_streams* stop = nullptr;
  for (auto& each : out)
    if (auto* one = std::get_if<stop_streams>(&each))
      stop = one;
  if (stop != nullptr)
    for (auto& op : operations_.in_flight())
      if (op.state == operation::phase::decided && (op.leader == sequence_number{} || op.leader == op.sequence))
        stop->decided.emplace_back(op.sequence, op.epoch);
  end_operations(out, operations_.take_committed(members_.ranks()));
  finish_end(out);
  check();
  return out;
}

void epoch_change::check() const {
  ensure(members_.latest_epoch() <= state_.epoch(), "no epoch is open that was not announced");
  ensure(!state_.is_active() || !spares_.any_waits(), "in an active epoch no rank waits for a spare");
  ensure(state_.phase() != phase::aborted || operations_.nothing_in_flight(), "nothing is in flight after the end");
  ensure(state_.is_ending() == end_.has_begun(), "an end has a reason");
  ensure(!end_.is_gone() || state_.phase() == phase::aborted, "a communicator is gone after its end");
}

std::string epoch_change::state_text() const {
  std::vector<std::string> queue;
  for (auto& op : operations_.in_flight())
    queue.push_back(fmt::format("#{} {}", op.sequence, name_of(op.state)));
  return fmt::format("communicator {} is {} (open: {}), ranks {}, not stopped {}, to be replaced {}, spare asked for "
                     "0x{:x}, in flight [{}]{}{}, held {} times",
                     owner_, state_.state_text(), members_.latest_epoch(), ids_text(ids_of(members_.ranks())),
                     ids_text(state_.to_stop()), ids_text(spares_.waiting()), spares_.asked_for(),
                     fmt::join(queue, ", "), state_.data_moves() ? ", data moves" : "",
                     end_.is_asked_for() ? ", to be destroyed" : "", end_.holds());
}

std::string epoch_change::async_error() const {
  return end_.has_begun() ? fmt::format("communicator {} has ended: {}", owner_, end_.reason()) : losses_.text();
}

caf::error epoch_change::end_error() const {
  return end_.has_begun() ? make_error(end_.code(), async_error()) : caf::error{};
}

// -- members that are lost, and how the others stop -----------------------------

epoch_change::decisions epoch_change::lost(device_id device, const std::string& cause, bool left) {
  if (!left || departures_.is_being_replaced(device) || !members_.contains(device)) {
    proto::Verdict found;
    found.set_evidence(cause);
    return lost({device}, found);
  }
  decisions out;
  if (departures_.take_back(device))
    out.emplace_back(members_left{{device}, state_.epoch(), {}});
  const auto reason = fmt::format("rank {} ({}) left: {}", members_.known_rank_of(device), members_.name_of(device),
                                  cause);
  take_rank_of(device, reason);
  go_on_after_loss(out, {device}, reason);
  return out;
}

epoch_change::decisions epoch_change::lost(const std::vector<device_id>& devices, const proto::Verdict& found) {
  decisions out;
  std::vector<device_id> members;
  for (auto device : devices)
    if (departures_.end_replacing(device)) { // its rank goes on waiting for a spare
      losses_.add(fmt::format("rank {} ({}) was lost when it was to leave: {}", members_.rank_of(device),
                              members_.name_of(device), found.evidence()));
      out.emplace_back(members_left{{device}, state_.epoch(), {}});
    } else if (members_.contains(device)) {
      members.push_back(device);
      if (departures_.take_back(device))
        out.emplace_back(members_left{{device}, state_.epoch(), {}});
    } // else it was reported before: fencing a suspect also makes its monitor report
  check();
  if (members.empty())
    return out;
  auto whole = verdict_on(members, found);
  whole.set_evidence(whole.evidence() + outputs_lost_with(members));
  const auto reason = state_.phase() == phase::aborted ? finding_of(whole) : finding_of(verdicts_.open(whole));
  for (auto device : members)
    take_rank_of(device, reason);
  go_on_after_loss(out, members, reason);
  return out;
}

void epoch_change::go_on_after_loss(decisions& out, const std::vector<device_id>& devices, const std::string& reason) {
  if (state_.phase() == phase::aborted)
    return;
  if (state_.phase() == phase::ending) {
    end_operations(out, operations_.take_committed(members_.ranks()));
    if (state_.all_have_stopped())
      all_stopped(out); // they were the last that had not stopped
    check();
    return;
  }
  losses_.add(reason);
  go_on_without(out, reason);
  // After the stop: clients that wait for these operations hear of the new epoch.
  end_operations(out, operations_.take_committed(members_.ranks()));
  finish_end(out);
  for (auto device : devices)
    ensure(!members_.contains(device) && state_.has_stopped(device), "a lost device is no member");
  check();
}

proto::Verdict epoch_change::completed(proto::Verdict found) const {
  found.set_epoch(members_.latest_epoch().value);
  auto& known = *members_.in(members_.latest_epoch());
  for (auto& x : *found.mutable_culprits()) {
    const device_id device{x.device_id()};
    x.set_rank(static_cast<uint32_t>(members_.known_rank_of(device)));
    auto rank = std::find_if(known.begin(), known.end(), [=](auto& y) { return y.id() == device; });
    if (rank == known.end())
      continue;
    x.set_node(rank->metadata.node());
    x.set_host(rank->metadata.host());
    x.set_pid(rank->metadata.pid());
    x.set_local(rank->metadata.place().empty());
  }
  return found;
}

proto::Verdict epoch_change::verdict_on(const std::vector<device_id>& devices, proto::Verdict found) const {
  ensure(!devices.empty(), "a loss is of members");
  found.clear_culprits();
  for (auto device : devices)
    found.add_culprits()->set_device_id(device.value);
  return completed(std::move(found));
}

std::string epoch_change::outputs_lost_with(const std::vector<device_id>& devices) const {
  std::string result;
  if (policy_ != proto::REPLACE || state_.is_ending())
    return result;
  for (auto& op : operations_.in_flight())
    if (op.state == operation::phase::decided
        && std::any_of(devices.begin(), devices.end(), [&](auto x) { return op.committed.count(x) == 0; }))
      result += fmt::format("; its output of operation #{} is lost", op.sequence);
  return result;
}

void epoch_change::take_rank_of(device_id device, const std::string& reason) {
  if (policy_ == proto::REPLACE && !state_.is_ending()) {
    members_.mark_lost(device);
    spares_.add(device);
  } else {
    members_.remove(device);
    operations_.drop(device, reason);
  }
  state_.note_stopped(device);
  operations_.batch().note_lost(device);
}

void epoch_change::go_on_without(decisions& out, const std::string& reason) {
  if (policy_ == proto::ABORT)
    begin_end(out, reason);
  else if (members_.ranks().empty())
    begin_end(out, reason + "; no device is left", errc::device_lost);
  else
    stop_members(out, reason);
}

void epoch_change::stop_members(decisions& out, const std::string& reason) {
  ensure(state_.phase() != phase::aborted, "no stream is stopped for a communicator that has ended");
  if (state_.phase() != phase::ending)
    state_.enter(phase::quiescing);
  if (!reason.empty())
    state_.add_reason(reason);
  if (state_.data_moves()) // its ranks go on with the result
    return state_.defer_stop();
  stop_streams order{{}, members_.present(), operations_.stop(), state_.phase() == phase::ending, {}};
  state_.start_next_epoch(order.devices);
  ensure(members_.latest_epoch() < state_.epoch(), "no epoch opens twice");
  order.epoch = state_.epoch();
  out.emplace_back(std::move(order));
  if (state_.all_have_stopped())
    all_stopped(out);
}

epoch_change::decisions epoch_change::quiesced(device_id device, epoch_number in_epoch) {
  decisions out;
  if (in_epoch == state_.epoch() && state_.note_stopped(device) && state_.all_have_stopped())
    all_stopped(out);
  check();
  return out;
}

void epoch_change::all_stopped(decisions& out) {
  ensure(state_.all_have_stopped(), "no epoch opens while a member has not stopped");
  ensure(state_.is_ending() || !state_.data_moves(), "no epoch opens while data moves");
  end_operations(out, operations_.take_cancelled());
  if (state_.is_ending())
    return finish_end(out);
  if (spares_.any_waits())
    return ask_for_spare(out);
  ensure(!departures_.any_being_replaced(), "no epoch opens while a rank waits for a spare");
  ensure(!members_.ranks().empty(), "an epoch has ranks");
  state_.enter(phase::active);
  epoch_opened opened{state_.epoch(), state_.take_reason(), {}};
  ensure(!opened.reason.empty(), "an epoch opens for a reason");
  for (auto& op : operations_.in_flight())
    if (op.state == operation::phase::running && op.attempts > 0)
      opened.rerun.push_back(op.sequence);
  members_.open(state_.epoch());
  auto verdicts = verdicts_.close(opened.epoch, members_.ranks().size(), opened.rerun);
  out.emplace_back(std::move(opened));
  for (auto& x : verdicts)
    out.emplace_back(verdict_given{std::move(x)});
}

// -- members that are replaced ----------------------------------------------------

void epoch_change::ask_for_spare(decisions& out) {
  ensure(policy_ == proto::REPLACE, "only the policy \"replace\" asks for spares");
  state_.enter(phase::replacing);
  const auto asked = spares_.ask(operations_.latest());
  if (!asked)
    return; // the answer is due
  const auto lost = *asked;
  const auto rank = members_.rank_of(lost);
  ensure(rank < members_.ranks().size() && members_.ranks()[rank].lost, "a spare is for the rank of a lost device");
  auto& place = members_.ranks()[rank].metadata;
  const auto begin = place.minmemaddr().value(), end = place.maxmemaddr().value();
  ensure(begin <= end, "a memory ends after it begins");
  const bool works = departures_.is_being_replaced(lost);
  out.emplace_back(spare_wanted{
    place, works ? std::vector{operation_queue::memory_range{lost, begin, end - begin}} : operations_.inputs_of(lost),
    works});
}

epoch_change::decisions epoch_change::spare(const proto::SpareResponse& x, device_id lost) {
  decisions out;
  ensure(lost != device_id{} && spares_.asked_for() == lost, "a spare answers the open request");
  spares_.answered();
  if (state_.is_ending())
    return out; // the coordinator takes the spare back when the communicator ends
  ensure(state_.phase() == phase::replacing || state_.phase() == phase::quiescing,
         "a spare comes while members change");
  const bool was_leaving = departures_.is_being_replaced(lost);
  if (!x.success() && was_leaving) {
    keep(out, lost, make_error(errc::refused, x.error()));
    return out;
  }
  if (!x.success()) {
    begin_end(out, losses_.latest() + "; it could not be replaced: " + x.error());
    return out;
  }
  const auto rank = members_.rank_of(lost);
  ensure(rank < members_.ranks().size(), "a spare takes the rank of a lost device");
  const auto old_min = members_.ranks()[rank].metadata.minmemaddr().value();
  members_.replace(lost, x.device());
  if (!was_leaving || !x.inputs_restored())
    operations_.batch().note_spare(id_of(x.device()));
  spares_.remove(lost);
  if (!was_leaving)
    verdicts_.note_spare(id_of(x.device()));
  operations_.replace(lost, old_min, x.device(), [&](const operation& op) {
    if (!x.inputs_restored())
      return make_error(errc::device_lost, x.inputs_error());
    return spares_.knew_of(op.sequence)
             ? caf::error{}
             : make_error(errc::device_lost, "the call came while the device was being replaced");
  });
  state_.add_reason(fmt::format("{} took its place", text_of(x.device())));
  const auto left = departures_.end_replacing(lost);
  if (left)
    losses_.add(*left);
  stop_members(out, {}); // cancelled operations leave the streams
  if (left)
    out.emplace_back(members_left{{lost}, state_.epoch(), {}});
  ensure(members_.rank_of(lost) == members_.ranks().size(), "a replaced device has no rank");
  check();
  return out;
}

epoch_change::decisions epoch_change::no_spare(const std::string& why) {
  const auto lost = spares_.answered();
  ensure(lost != device_id{}, "a spare is refused only if one was asked for");
  decisions out;
  if (departures_.is_being_replaced(lost))
    keep(out, lost, make_error(errc::refused, "the coordinator gave no spare: " + why));
  else if (!state_.is_ending())
    begin_end(out, losses_.latest() + "; the coordinator gave no spare: " + why);
  return out;
}

// -- members that leave -------------------------------------------------------------

caf::error epoch_change::ask_to_leave(const std::vector<device_id>& devices, const std::string& reason) {
  if (state_.is_ending())
    return make_error(errc::refused, async_error());
  auto more = departures_.asked();
  for (auto device : devices)
    if (members_.contains(device))
      more.try_emplace(device, reason);
  if (policy_ != proto::REPLACE && more.size() == members_.ranks().size())
    return make_error(errc::refused,
                      fmt::format("communicator {} has no other ranks: destroy it, or wait for its end", owner_));
  if (policy_ == proto::ABORT)
    return make_error(errc::refused,
                      fmt::format("communicator {} would end if a rank left it, as its policy is \"abort\"", owner_));
  departures_.ask(std::move(more));
  return {};
}

epoch_change::decisions epoch_change::ask_to_stay(const std::vector<device_id>& devices) {
  decisions out;
  for (auto device : devices)
    if (departures_.take_back(device))
      out.emplace_back(
        members_left{{device}, state_.epoch(), make_error(errc::refused, "the request to leave was withdrawn")});
  return out;
}

bool epoch_change::can_leave() const {
  auto& queue = operations_.in_flight();
  return state_.is_active() && departures_.any_asked() && !state_.data_moves()
         && std::all_of(queue.begin(), queue.end(), [](auto& op) { return op.attempts == 0; });
}

epoch_change::decisions epoch_change::let_leave() {
  ensure(can_leave(), "members leave when nothing is under way");
  decisions out;
  if (policy_ != proto::REPLACE
      && departures_.asked().size() == members_.ranks().size()) { // others were lost meanwhile
    const auto problem = fmt::format("communicator {} has no other ranks left", owner_);
    out.emplace_back(members_left{departures_.keep_all(), state_.epoch(), make_error(errc::refused, problem)});
    stop_members(out, "no rank leaves: " + problem); // the calls that have waited start in the new epoch
    return out;
  }
  ensure(policy_ != proto::ABORT, "no member leaves under the policy \"abort\"");
  const auto leavers = departures_.take_asked();
  std::vector<std::string> reasons;
  for (auto& [device, reason] : leavers) { // with the ranks that they have now
    ensure(members_.contains(device), "a member leaves that is there");
    reasons.push_back(fmt::format("rank {} ({}) leaves: {}", members_.rank_of(device), members_.name_of(device),
                                  reason));
  }
  std::vector<device_id> gone;
  for (size_t i = 0; auto& [device, why] : leavers) {
    auto& reason = reasons[i++];
    if (policy_ == proto::REPLACE) {
      members_.mark_lost(device);
      spares_.add(device);
      departures_.start_replacing(device, reason);
      continue;
    }
    losses_.add(reason);
    members_.remove(device);
    operations_.drop(device, reason);
    operations_.batch().note_lost(device);
    gone.push_back(device);
  }
  stop_members(out, fmt::format("{}", fmt::join(reasons, "; ")));
  if (!gone.empty())
    out.emplace_back(members_left{std::move(gone), state_.epoch(), {}});
  check();
  return out;
}

void epoch_change::keep(decisions& out, device_id device, const caf::error& problem) {
  const bool was_leaving = departures_.end_replacing(device).has_value();
  ensure(was_leaving, "a member stays that was to leave");
  members_.mark_kept(device);
  spares_.remove(device);
  stop_members(out, fmt::format("rank {} ({}) stays: {}", members_.rank_of(device), members_.name_of(device),
                                render(problem)));
  out.emplace_back(members_left{{device}, state_.epoch(), problem});
}

// -- operations -------------------------------------------------------------------

epoch_change::decisions epoch_change::reported(const proto::RankReport& x) {
  decisions out;
  if (!operations_.counts(x))
    return out;
  const device_id device{x.device_id()};
  auto& op = *operations_.find(sequence_number{x.sequence()});
  ensure(op.epoch <= state_.epoch(), "an attempt is of an epoch that was open");
  ensure(op.state != operation::phase::running || op.epoch == state_.epoch(), "a running attempt is of this epoch");
  if (x.phase() == proto::RankReport::BROKEN) {
    if (op.state != operation::phase::running)
      return out;
    const auto given = error_from_wire(x.code(), x.error());
    const auto reason = given ? given : make_error(errc::refused, "it gave no reason");
    proto::Verdict found;
    found.set_kind(proto::Verdict::BROKEN);
    found.set_evidence(render(reason));
    found.set_sequence(op.sequence.value);
    found.set_operation(std::string{ringmaster::name_of(op.what().kind())});
    const auto& whole = verdicts_.open(verdict_on({device}, std::move(found)));
    operations_.cancel(op, make_error(static_cast<errc>(wire_code(reason)), finding_of(whole)));
    stop_members(out, fmt::format("operation #{} failed", op.sequence));
    return out;
  }
  ensure(op.state != operation::phase::cancelled || !state_.is_active(),
         "a cancelled operation has left the streams when an epoch is active");
  if (x.phase() == proto::RankReport::COMMITTED) {
    operations_.note_committed(op, device);
  } else if (const auto decided = operations_.note_finished(op, device); !decided.empty()) {
    for (const auto* each : decided)
      if (policy_ == proto::REPLACE)
        out.emplace_back(outputs_changed{operation_queue::outputs_of(*each)});
    out.emplace_back(release_operation{op.sequence});
  }
  end_operations(out, operations_.take_committed(members_.ranks()));
  finish_end(out);
  return out;
}

void epoch_change::end_operations(decisions& out, std::vector<operation> ended) {
  for (auto& op : ended) {
    const bool is_cancelled = op.state == operation::phase::cancelled;
    ensure(op.state != operation::phase::running, "an operation is decided or cancelled before it ends");
    ensure(!is_cancelled || op.error, "a cancelled operation has its error");
    if (is_cancelled)
      verdicts_.note_failed(op.sequence);
    if (op.epoch == epoch_number{})
      op.epoch = state_.epoch();
    const bool wrote_in_part = is_cancelled && op.attempts > 0 && !(op.in_place() && replaces_input(op.what().kind()));
    if (wrote_in_part && policy_ == proto::REPLACE) // only spares get inputs from the host's copies
      out.emplace_back(outputs_changed{operation_queue::outputs_of(op)});
    out.emplace_back(operation_ended{std::move(op)});
  }
}

epoch_change::decisions epoch_change::overdue(const std::vector<sequence_number>& sequences, const std::string& limit,
                                              proto::Verdict found) {
  decisions out;
  ensure(!limit.empty(), "an operation is late by a limit");
  std::vector<sequence_number> late;
  for (auto sequence : sequences)
    if (auto op = operations_.find(sequence); op != nullptr && op->state == operation::phase::running)
      late.push_back(sequence);
  if (late.empty())
    return out;
  const bool one = late.size() == 1;
  found.set_evidence(fmt::format("operation{} #{} {} not ended within {}: {}", one ? "" : "s", fmt::join(late, ", #"),
                                 one ? "has" : "have", limit, found.evidence()));
  const auto reason = make_error(errc::timed_out, finding_of(verdicts_.open(completed(std::move(found)))));
  for (auto sequence : late)
    operations_.cancel(*operations_.find(sequence), reason);
  // Streams that are being stopped do not know that these are cancelled: they are stopped again, for a higher epoch.
  if (state_.is_active() || state_.phase() == phase::quiescing)
    stop_members(out, fmt::format("operation #{} took too long", fmt::join(late, ", #")));
  check();
  return out;
}

epoch_change::decisions epoch_change::way_lost(const proto::Verdict& found) {
  decisions out;
  ensure(!found.evidence().empty(), "a lost connection has a reason");
  if (state_.is_active() && !operations_.nothing_in_flight())
    stop_members(out, finding_of(verdicts_.open(completed(found))));
  check();
  return out;
}

epoch_change::decisions epoch_change::stalled(const proto::Verdict& found) {
  decisions out;
  ensure(!found.evidence().empty(), "a stall has a reason");
  if (!state_.is_active())
    return out;
  const auto reason = finding_of(verdicts_.open(completed(found)));
  operations_.cancel_running(make_error(errc::timed_out, reason));
  stop_members(out, reason);
  check();
  return out;
}

epoch_change::decisions epoch_change::judged(const proto::Verdict& found) {
  return {verdict_given{verdicts_.note(completed(found))}};
}

epoch_change::decisions epoch_change::group_closed() {
  decisions out;
  if (state_.is_active())
    end_operations(out, operations_.take_cancelled());
  check();
  return out;
}

// -- data of shared-memory operations -----------------------------------------------

epoch_change::decisions epoch_change::data_moves(operation& op) {
  ensure(state_.is_active(), "data moves in an active epoch");
  ensure(op.epoch == state_.epoch(), "data moves for an operation of this epoch");
  operations_.start_moving(op);
  state_.start_moving();
  decisions out;
  if (policy_ == proto::REPLACE)
    out.emplace_back(outputs_changed{operation_queue::outputs_of(op)});
  return out;
}

epoch_change::decisions epoch_change::data_moved(sequence_number sequence, const caf::error& damage) {
  decisions out;
  ensure(state_.data_moves(), "data that has moved was moving");
  auto moved = operations_.take([=](const operation& x) { return x.sequence == sequence; });
  ensure(moved.size() == 1 && moved.front().moving, "data that has moved is of an operation in flight");
  auto& op = moved.front();
  ensure(op.state == operation::phase::decided, "an operation is decided before its data moves");
  op.error = damage;
  out.emplace_back(operation_ended{std::move(op)});
  return out;
}

epoch_change::decisions epoch_change::transfer_finished() {
  decisions out;
  if (state_.end_moving())
    stop_members(out, {});
  finish_end(out);
  check();
  return out;
}

// -- the end ------------------------------------------------------------------------

epoch_change::decisions epoch_change::abort(const std::string& reason) {
  decisions out;
  begin_end(out, reason);
  check();
  return out;
}

void epoch_change::begin_end(decisions& out, const std::string& reason, errc code) {
  if (state_.is_ending())
    return;
  ensure(!reason.empty(), "an end has a reason");
  state_.enter(phase::ending);
  end_.begin(reason, code);
  if (auto kept = departures_.keep_all(); !kept.empty())
    out.emplace_back(members_left{std::move(kept), state_.epoch(), make_error(errc::refused, async_error())});
  operations_.cancel_all(end_error());
  members_.remove_lost();
  spares_.clear();
  out.emplace_back(end_began{end_error()});
  stop_members(out, reason);
}

epoch_change::decisions epoch_change::destroy(const std::string& reason) {
  decisions out;
  end_.ask_to_destroy();
  begin_end(out, reason);
  finish_end(out);
  check();
  return out;
}

epoch_change::decisions epoch_change::let_go() {
  decisions out;
  ensure(end_.holds() > 0, "a communicator is let go as often as it was held");
  end_.let_go();
  finish_end(out);
  return out;
}

void epoch_change::finish_end(decisions& out) {
  if (!state_.is_ending() || state_.stop_is_deferred() || !state_.all_have_stopped() || !operations_.nothing_in_flight()
      || end_.holds() > 0)
    return;
  ensure(!state_.data_moves(), "nothing moves data after the end");
  if (state_.phase() == phase::ending) {
    state_.enter(phase::aborted);
    if (!end_.is_asked_for())
      out.emplace_back(communicator_aborted{end_.reason()});
    for (auto& x : verdicts_.close_at_end())
      out.emplace_back(verdict_given{std::move(x)});
  }
  if (end_.note_gone())
    out.emplace_back(communicator_gone{end_.reason()});
}

} // namespace ringmaster
