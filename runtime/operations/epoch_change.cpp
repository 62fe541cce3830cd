#include "runtime/operations/epoch_change.hpp"

#include "runtime/operations/admission.hpp"
#include "runtime/schedule/collective.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

namespace ringmaster {

epoch_change::epoch_change(communicator_id owner, proto::FailurePolicy policy, std::vector<rank_device> ranks)
  : operations_(owner), owner_(owner), policy_(policy), ranks_(std::move(ranks)) {
  note_ranks();
}

void epoch_change::note_ranks() {
  history_[epoch_] = ranks_;
  if (history_.size() > admission::history_max)
    history_.erase(history_.begin());
}

void epoch_change::enter(phase next) {
  const bool is_legal = next == phase::active      ? state_ == phase::quiescing
                        : next == phase::quiescing ? !ending()
                        : next == phase::replacing ? state_ == phase::quiescing
                        : next == phase::ending    ? !ending()
                                                   : state_ == phase::ending;
  ensure(is_legal, "a phase follows one that it may follow");
  state_ = next;
}

void epoch_change::check() const {
  ensure(history_.rbegin()->first <= epoch_, "no epoch is open that was not announced");
  ensure(state_ != phase::active || quiescing_.empty(), "in an active epoch no member is being stopped");
  ensure(state_ != phase::active || to_replace_.empty(), "in an active epoch no rank waits for a spare");
  ensure(state_ != phase::replacing || quiescing_.empty(), "ranks are replaced when all members have stopped");
  ensure(data_moves_ || !stop_when_it_rests_, "a stop waits only for data that moves");
  ensure(state_ != phase::aborted || operations_.nothing_in_flight(), "nothing is in flight after the end");
  ensure(!gone_told_ || (gone_ && state_ == phase::aborted), "a communicator is gone after its end");
}

std::string epoch_change::state_text() const {
  constexpr std::string_view phases[] = {"active", "quiescing", "replacing", "ending", "aborted"};
  const auto ids = [](const auto& devices, auto id) {
    std::vector<std::string> result;
    for (auto& x : devices)
      result.push_back(fmt::format("0x{:x}", id(x)));
    return fmt::format("[{}]", fmt::join(result, " "));
  };
  const auto own = [](device_id x) { return x; };
  std::vector<std::string> queue;
  for (auto& op : operations_.in_flight())
    queue.push_back(fmt::format("#{} {}", op.sequence,
                                op.state == operation::phase::running   ? "running"
                                : op.state == operation::phase::decided ? "decided"
                                                                        : "cancelled"));
  return fmt::format(
    "communicator {} is {} in epoch {} (open: {}), ranks {}, not stopped {}, to be replaced {}, spare asked "
    "for 0x{:x}, in flight [{}]{}{}, held {} times",
    owner_, phases[static_cast<size_t>(state_)], epoch_, history_.rbegin()->first,
    ids(ranks_, [](auto& x) { return x.id(); }), ids(quiescing_, own), ids(to_replace_, own), asked_for_,
    fmt::join(queue, ", "), data_moves_ ? ", data moves" : "", gone_ ? ", to be destroyed" : "", held_);
}

bool epoch_change::is_there(device_id device) const {
  return std::any_of(ranks_.begin(), ranks_.end(), [=](auto& x) { return x.id() == device && !x.lost; });
}

size_t epoch_change::rank_of(device_id device) const {
  auto i = std::find_if(ranks_.begin(), ranks_.end(), [=](auto& x) { return x.id() == device; });
  return static_cast<size_t>(i - ranks_.begin());
}

std::string epoch_change::name_of(device_id device) const {
  auto i = std::find_if(ranks_.begin(), ranks_.end(), [=](auto& x) { return x.id() == device; });
  return i == ranks_.end() ? fmt::format("device 0x{:x}", device) : text_of(i->metadata);
}

const std::vector<rank_device>* epoch_change::ranks_in(epoch_number epoch) const {
  auto i = history_.find(epoch);
  return i == history_.end() ? nullptr : &i->second;
}

std::vector<rank_device> epoch_change::ranks_now(epoch_number epoch) const {
  auto result = history_.at(epoch);
  for (auto& x : result)
    x.dropped = std::none_of(ranks_.begin(), ranks_.end(), [&](auto& y) { return y.id() == x.id(); });
  return result;
}

bool epoch_change::counts(const proto::RankReport& x) {
  auto op = operations_.find(sequence_number{x.sequence()});
  return op != nullptr && op->epoch == epoch_number{x.epoch()} && x.phase() != proto::RankReport::INTERRUPTED;
}

// -- who is lost, and how the others stop ---------------------------------------

epoch_change::decisions epoch_change::lost(device_id device, const std::string& cause, bool left) {
  decisions out;
  if (leaving_.erase(device) != 0) { // from now on its place waits as anybody's
    note_loss(fmt::format("rank {} ({}) {} when it was to leave: {}", rank_of(device), name_of(device),
                          left ? "left" : "was lost", cause));
    out.emplace_back(members_left{{device}, epoch_, {}});
    return out;
  }
  if (!is_there(device))
    return out; // heard of already: a suspicion's fence makes the monitor speak, too
  if (to_leave_.erase(device) != 0)
    out.emplace_back(members_left{{device}, epoch_, {}});
  auto i = std::find_if(ranks_.begin(), ranks_.end(), [=](auto& x) { return x.id() == device; });
  auto& known = history_.rbegin()->second; // as everybody knows the ranks, whoever else is lost meanwhile
  auto then = std::find_if(known.begin(), known.end(), [=](auto& x) { return x.id() == device; });
  auto rank = then != known.end() ? then - known.begin() : i - ranks_.begin();
  auto reason = fmt::format("rank {} ({}) {}: {}", rank, text_of(i->metadata), left ? "left" : "was lost", cause);
  ensure(i != ranks_.end(), "a member that is lost has a rank");
  if (policy_ == proto::REPLACE && !ending()) {
    i->lost = true;
    to_replace_.push_back(device);
    for (auto& op : operations_.in_flight())
      if (op.state == operation::phase::decided && op.committed.count(device) == 0)
        reason += fmt::format("; its output of operation #{} is lost", op.sequence);
  } else {
    ranks_.erase(i);
    operations_.drop(device);
  }
  quiescing_.erase(device);
  without_results_.erase(device);
  if (state_ == phase::aborted)
    return out;
  if (state_ == phase::ending) {
    end_decided(out);
    if (quiescing_.empty())
      reopen(out); // it was the last that had not stopped
    check();
    return out;
  }
  note_loss(reason);
  if (policy_ == proto::ABORT)
    begin_end(out, reason);
  else if (ranks_.empty())
    begin_end(out, reason + "; no device is left", errc::device_lost);
  else
    quiesce(out, reason);
  end_decided(out); // only now: those who wait shall hear of the new epoch
  finish_end(out);
  ensure(!is_there(device), "a lost device is no member");
  check();
  return out;
}

void epoch_change::note_loss(std::string reason) {
  constexpr size_t losses_max = 16;
  losses_.push_back(std::move(reason));
  if (losses_.size() > losses_max) {
    losses_.pop_front();
    ++losses_forgotten_;
  }
}

std::string epoch_change::async_error() const {
  if (ending())
    return fmt::format("communicator {} has ended: {}", owner_.value, end_reason_);
  auto latest = fmt::format("{}", fmt::join(losses_, "; "));
  return losses_forgotten_ == 0 ? latest : fmt::format("after {} earlier losses: {}", losses_forgotten_, latest);
}

caf::error epoch_change::end_error() const {
  return ending() ? make_error(end_code_, async_error()) : caf::error{};
}

void epoch_change::batch_began(bool of_host) {
  of_host_ = of_host;
  has_results_ = false;
  without_results_.clear();
}

void epoch_change::note_results(const operation& op) {
  has_results_ = has_results_ || is_of_batch(op);
}

void epoch_change::quiesce(decisions& out, const std::string& reason) {
  ensure(state_ != phase::aborted, "no stream is stopped for a communicator that has ended");
  if (state_ != phase::ending)
    enter(phase::quiescing);
  if (!reason.empty())
    epoch_reason_ += epoch_reason_.empty() ? reason : "; " + reason;
  if (data_moves_) { // its ranks shall go on with the result
    stop_when_it_rests_ = true;
    return;
  }
  open_next_epoch();
  stop_streams order{epoch_, {}, operations_.stop(), state_ == phase::ending};
  for (auto& x : ranks_)
    if (!x.lost)
      order.devices.push_back(x.id());
  quiescing_ = {order.devices.begin(), order.devices.end()};
  out.emplace_back(std::move(order));
  if (quiescing_.empty())
    reopen(out);
}

epoch_change::decisions epoch_change::quiesced(device_id device, epoch_number epoch) {
  decisions out;
  if (epoch == epoch_ && quiescing_.erase(device) != 0 && quiescing_.empty())
    reopen(out);
  check();
  return out;
}

void epoch_change::reopen(decisions& out) {
  end_cancelled(out);
  if (state_ == phase::ending)
    finish_end(out);
  else if (!to_replace_.empty())
    replace_next(out);
  else
    activate(out);
}

void epoch_change::open_next_epoch() {
  const auto before = epoch_;
  epoch_ = epoch_.next();
  ensure(before < epoch_, "epochs rise");
  ensure(history_.rbegin()->first < epoch_, "no epoch opens twice");
}

void epoch_change::activate(decisions& out) {
  ensure(quiescing_.empty(), "no epoch opens while a member has not stopped");
  ensure(to_replace_.empty() && leaving_.empty(), "no epoch opens while a rank waits for a spare");
  ensure(!ranks_.empty(), "an epoch has ranks");
  ensure(std::none_of(ranks_.begin(), ranks_.end(), [](auto& x) { return x.lost; }), "an epoch has no lost rank");
  enter(phase::active);
  epoch_opened opened{epoch_, std::exchange(epoch_reason_, {}), {}};
  for (auto& op : operations_.in_flight())
    if (op.state == operation::phase::running && op.attempts > 0)
      opened.rerun.push_back(op.sequence);
  note_ranks();
  out.emplace_back(std::move(opened));
}

// -- who is replaced --------------------------------------------------------------

void epoch_change::replace_next(decisions& out) {
  ensure(policy_ == proto::REPLACE, "only the policy \"replace\" asks for spares");
  ensure(!to_replace_.empty(), "a spare is asked for if a rank waits for one");
  enter(phase::replacing);
  auto lost = to_replace_.front();
  if (asked_for_ == lost)
    return; // the answer is under way
  ensure(asked_for_ == device_id{}, "one spare is asked for at a time");
  asked_for_ = lost;
  asked_at_ = operations_.latest();
  auto place = std::find_if(ranks_.begin(), ranks_.end(), [=](auto& x) { return x.id() == lost; });
  ensure(place != ranks_.end() && place->lost, "a spare is for the rank of a lost device");
  bool lives = leaving_.count(lost) != 0;
  auto begin = place->metadata.minmemaddr().value(), end = place->metadata.maxmemaddr().value();
  out.emplace_back(spare_wanted{
    place->metadata,
    lives ? std::vector{operation_queue::memory_range{lost, begin, end - begin}} : operations_.inputs_of(lost), lives});
}

epoch_change::decisions epoch_change::spare(const proto::SpareResponse& x, device_id lost) {
  decisions out;
  ensure(asked_for_ == lost, "a spare answers the open request");
  asked_for_ = {};
  if (ending())
    return out; // the coordinator takes it back when the communicator ends
  if (!x.success() && leaving_.count(lost) != 0) {
    stay(out, lost, make_error(errc::refused, x.error()));
    return out;
  }
  if (!x.success()) {
    begin_end(out, losses_.back() + "; it could not be replaced: " + x.error());
    return out;
  }
  auto place = std::find_if(ranks_.begin(), ranks_.end(), [=](auto& y) { return y.id() == lost; });
  ensure(place != ranks_.end() && place->lost, "a spare takes the rank of a lost device");
  auto old_min = place->metadata.minmemaddr().value();
  *place = {x.device(), false};
  if (has_results_ && !(leaving_.count(lost) != 0 && x.inputs_restored()))
    without_results_.insert(place->id());
  std::erase(to_replace_, lost);
  operations_.replace(lost, old_min, x.device(), [&](const operation& op) {
    if (!x.inputs_restored())
      return make_error(errc::device_lost, x.inputs_error());
    return op.sequence > asked_at_ ? make_error(errc::device_lost, "the call came while the device was being replaced")
                                   : caf::error{};
  });
  epoch_reason_ += fmt::format("; {} took its place", text_of(place->metadata));
  auto left = leaving_.extract(lost);
  if (left)
    note_loss(left.mapped());
  quiesce(out, {}); // what was cancelled leaves the streams
  if (left)
    out.emplace_back(members_left{{lost}, epoch_, {}});
  check();
  return out;
}

epoch_change::decisions epoch_change::no_spare(const std::string& why) {
  auto lost = std::exchange(asked_for_, {});
  ensure(lost != device_id{}, "a spare is refused only if one was asked for");
  decisions out;
  if (leaving_.count(lost) != 0)
    stay(out, lost, make_error(errc::refused, "the coordinator gave no spare: " + why));
  else if (!ending())
    begin_end(out, losses_.back() + "; the coordinator gave no spare: " + why);
  return out;
}

// -- operations -------------------------------------------------------------------

epoch_change::decisions epoch_change::reported(const proto::RankReport& x) {
  decisions out;
  if (!counts(x))
    return out; // of an epoch that is gone
  auto op = operations_.find(sequence_number{x.sequence()});
  if (x.phase() == proto::RankReport::BROKEN) {
    if (op->state != operation::phase::running)
      return out;
    const auto reason = error_from_wire(x.code(), x.error());
    operations_.cancel(*op, with_context(fmt::format("rank {} ({})", x.rank(), name_of(device_id{x.device_id()})),
                                         reason ? reason : make_error(errc::refused, "it gave no reason")));
    quiesce(out, fmt::format("operation #{} failed", op->sequence));
    return out;
  }
  ensure(op->state != operation::phase::cancelled || state_ != phase::active,
         "a cancelled operation has left the streams when an epoch is active");
  bool decided = false;
  for (auto each : operations_.fused_with(*op))
    if (x.phase() == proto::RankReport::COMMITTED) {
      each->committed.insert(device_id{x.device_id()});
    } else {
      each->finished.insert(device_id{x.device_id()});
      if (each->state == operation::phase::running && each->finished.size() == each->slots.size()) {
        each->state = operation::phase::decided;
        note_results(*each);
        note_outputs(out, *each);
        decided = true;
      }
    }
  if (decided)
    out.emplace_back(release_operation{op->sequence});
  end_decided(out);
  finish_end(out);
  return out;
}

void epoch_change::end_decided(decisions& out) {
  auto done = operations_.take([&](const operation& op) {
    return op.state == operation::phase::decided && !op.moving
           && std::all_of(ranks_.begin(), ranks_.end(), [&](auto& x) {
                return x.lost || op.finished.count(x.id()) == 0 || op.committed.count(x.id()) != 0;
              });
  });
  for (auto& op : done)
    end(out, std::move(op));
}

void epoch_change::end_cancelled(decisions& out) {
  for (auto& op : operations_.take([](const operation& x) { return x.state == operation::phase::cancelled; }))
    end(out, std::move(op));
}

void epoch_change::end(decisions& out, operation op) {
  ensure(op.state != operation::phase::running, "an operation is decided or cancelled before it ends");
  ensure(op.state != operation::phase::cancelled || op.error, "a cancelled operation has its error");
  if (op.epoch == epoch_number{})
    op.epoch = epoch_;
  if (op.state == operation::phase::cancelled && op.attempts > 0
      && !(op.in_place() && replaces_input(op.what().kind())))
    note_outputs(out, op); // in part
  out.emplace_back(operation_ended{std::move(op)});
}

void epoch_change::note_outputs(decisions& out, const operation& op) const {
  if (policy_ == proto::REPLACE)
    out.emplace_back(outputs_changed{operation_queue::outputs_of(op)});
}

epoch_change::decisions epoch_change::overdue(const std::vector<sequence_number>& sequences, const std::string& limit,
                                              const std::string& doing) {
  decisions out;
  std::vector<sequence_number> cancelled;
  for (auto sequence : sequences)
    if (auto op = operations_.find(sequence); op != nullptr && op->state == operation::phase::running) {
      operations_.cancel(*op, make_error(errc::timed_out, fmt::format("operation #{} has not ended within {}: {}",
                                                                      sequence, limit, doing)));
      cancelled.push_back(sequence);
    }
  // Streams that are being stopped have not been told that these are cancelled: once more, with a higher epoch.
  if (!cancelled.empty() && (state_ == phase::active || state_ == phase::quiescing))
    quiesce(out, fmt::format("operation #{} took too long", fmt::join(cancelled, ", #")));
  return out;
}

epoch_change::decisions epoch_change::way_lost(const std::string& reason) {
  decisions out;
  if (state_ == phase::active && !operations_.nothing_in_flight())
    quiesce(out, reason);
  return out;
}

epoch_change::decisions epoch_change::stalled(const std::string& reason) {
  decisions out;
  if (state_ != phase::active)
    return out;
  operations_.cancel_running(make_error(errc::timed_out, reason));
  quiesce(out, reason);
  return out;
}

epoch_change::decisions epoch_change::group_closed() {
  decisions out;
  if (state_ == phase::active)
    end_cancelled(out);
  return out;
}

// -- data of joint operations -----------------------------------------------------

epoch_change::decisions epoch_change::data_moves(operation& op) {
  ensure(state_ == phase::active, "data moves in an active epoch");
  ensure(op.state == operation::phase::running && op.epoch == epoch_, "data moves for an operation of this epoch");
  op.state = operation::phase::decided;
  note_results(op);
  op.moving = true;
  data_moves_ = true;
  decisions out;
  note_outputs(out, op);
  return out;
}

epoch_change::decisions epoch_change::data_moved(sequence_number sequence, const caf::error& damage) {
  decisions out;
  ensure(data_moves_, "data that has moved was moving");
  for (auto& op : operations_.take([=](const operation& x) { return x.sequence == sequence; })) {
    ensure(op.state == operation::phase::decided, "an operation is decided before its data moves");
    op.error = damage;
    end(out, std::move(op));
  }
  return out;
}

epoch_change::decisions epoch_change::transfer_finished() {
  decisions out;
  data_moves_ = false;
  if (std::exchange(stop_when_it_rests_, false))
    quiesce(out, {});
  finish_end(out);
  check();
  return out;
}

// -- the end ------------------------------------------------------------------------

epoch_change::decisions epoch_change::abort(const std::string& reason) {
  decisions out;
  begin_end(out, reason);
  return out;
}

void epoch_change::begin_end(decisions& out, const std::string& reason, errc code) {
  if (ending())
    return;
  ensure(!reason.empty(), "an end has a reason");
  enter(phase::ending);
  end_reason_ = reason;
  end_code_ = code;
  keep_leavers(out, make_error(errc::refused, async_error()));
  operations_.cancel_all(end_error());
  std::erase_if(ranks_, [](auto& x) { return x.lost; });
  to_replace_.clear();
  out.emplace_back(end_began{end_error()});
  quiesce(out, reason);
}

epoch_change::decisions epoch_change::destroy(const std::string& reason) {
  decisions out;
  gone_ = true;
  begin_end(out, reason);
  finish_end(out);
  return out;
}

epoch_change::decisions epoch_change::let_go() {
  decisions out;
  ensure(held_ > 0, "a communicator is let go as often as it was held");
  --held_;
  finish_end(out);
  return out;
}

void epoch_change::finish_end(decisions& out) {
  if (!ending() || stop_when_it_rests_ || !quiescing_.empty() || !operations_.nothing_in_flight() || held_ > 0)
    return;
  if (state_ == phase::ending) {
    enter(phase::aborted);
    if (!gone_)
      out.emplace_back(communicator_aborted{end_reason_});
  }
  if (gone_ && !std::exchange(gone_told_, true))
    out.emplace_back(communicator_gone{end_reason_});
}

} // namespace ringmaster
