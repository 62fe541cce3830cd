// A COMMUNICATOR's epochs: who is lost, how the others stop, and what runs again.
#include "actors/communicators/communicator.hpp"

#include "runtime/text/quantity_text.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <spdlog/spdlog.h>
#include <utility>

namespace ringmaster {

void communicator_state::announce_members() {
  proto::Members x;
  x.set_comm_id(options.id.value);
  x.set_epoch(epoch);
  device_handles handles;
  if (!gone_)
    for (auto& rank : members) {
      *x.add_devices() = rank.metadata;
      handles.push_back(rank.handle);
    }
  auto news = caf::make_message(membership::of(std::move(x), std::move(handles)));
  for (auto& rank : members)
    tell(rank.handle.device, news);
}

void communicator_state::note_ranks() {
  std::vector<uint64_t> ids;
  auto& devices = history_[epoch];
  for (auto& x : members) {
    ids.push_back(x.id());
    devices.push_back(x.metadata);
  }
  if (history_.size() > admission::history_max)
    history_.erase(history_.begin());
  admission_.set_ranks(epoch, std::move(ids));
}

void communicator_state::on_down(const caf::down_msg& x) {
  if (options.coordinator && x.source == options.coordinator.address()) {
    self->quit(x.reason); // nobody can reach it any more, but a timeout under way would keep it
    return;
  }
  auto i = std::find_if(members.begin(), members.end(),
                        [&](auto& rank) { return rank.handle.device->address() == x.source; });
  if (i != members.end())
    lose(i->id(), render(x.reason), "monitor", false);
}

void communicator_state::lose(uint64_t device, const std::string& cause, const std::string& noticed_by,
                              bool fence) {
  auto i = std::find_if(members.begin(), members.end(), [=](auto& x) { return x.id() == device; });
  if (i == members.end() || lost(device))
    return; // heard of already: a suspicion's fence makes the monitor speak, too
  flush_plans(); // they were made for the members of now
  auto& ranks = history_.rbegin()->second; // as everybody knows them, whoever else is lost meanwhile
  auto known = std::ranges::find(ranks, device, [](auto& x) { return x.deviceid().value(); });
  auto position = known != ranks.end() ? known - ranks.begin() : i - members.begin();
  if (options.coordinator) {
    proto::MemberLost lost;
    lost.set_comm_id(options.id.value);
    lost.set_device_id(device);
    lost.set_cause(cause);
    lost.set_noticed_by(noticed_by);
    lost.set_fence(fence);
    lost.set_noticed_ns(unix_ns());
    self->send(options.coordinator, std::move(lost));
  }
  auto reason = fmt::format("rank {} (device 0x{:x}) was lost: {}", position, device, cause);
  if (options.policy == proto::REPLACE && state != phase::ending && state != phase::aborted) {
    to_replace_.push_back(device);
    for (auto& op : operations_)
      if (op.state == operation::phase::decided && op.committed.count(device) == 0)
        reason += fmt::format("; its output of operation #{} is lost", op.sequence);
  } else {
    members.erase(i);
    for (auto* queue : {&operations_, &group_})
      for (auto& op : *queue)
        if (op.state == operation::phase::running)
          if (auto why = op.drop(device); !why.empty())
            cancel(op, fmt::format("operation #{}: {}", op.sequence, why));
  }
  quiescing_.erase(device);
  if (state == phase::aborted)
    return;
  if (state == phase::ending) {
    check_decided();
    if (quiescing_.empty())
      reopen(); // it was the last that had not stopped
    return;
  }
  async_error_ = reason;
  if (options.policy == proto::ABORT)
    abort(reason);
  else if (members.empty())
    abort(reason + "; no device is left");
  else
    quiesce(reason);
  check_decided(); // only now: those who wait shall hear of the new epoch
  finish_ending();
}

void communicator_state::cancel(operation& op, const std::string& error) {
  for (auto each : fused_with(op)) {
    each->state = operation::phase::cancelled;
    each->error = error;
  }
}

void communicator_state::quiesce(const std::string& reason) {
  if (state != phase::ending)
    state = phase::quiescing;
  if (!reason.empty())
    epoch_reason_ += epoch_reason_.empty() ? reason : "; " + reason;
  flush_plans();
  if (moving_.sequence != 0) { // its ranks shall go on with the result
    quiesce_after_moving_ = true;
    keep_ticking();
    return;
  }
  ++epoch;
  proto::Quiesce order;
  order.set_comm_id(options.id.value);
  order.set_epoch(epoch);
  order.set_forget(state == phase::ending);
  for (auto& op : operations_)
    if (op.state == operation::phase::cancelled)
      order.add_cancel(op.sequence);
    else if (op.state == operation::phase::running)
      op.epoch = 0; // whatever its ranks still say of it does not count
  quiescing_.clear();
  for (auto& rank : members)
    if (!lost(rank.id())) {
      quiescing_.insert(rank.id());
      self->send(caf::actor_cast<stream_actor>(rank.handle.stream), order);
    }
  keep_ticking();
  if (quiescing_.empty())
    reopen();
}

void communicator_state::on_quiesced(const proto::Quiesced& x) {
  if (x.epoch() != epoch || quiescing_.erase(x.device_id()) == 0)
    return;
  last_progress_ = self->clock().now();
  if (quiescing_.empty())
    reopen();
}

void communicator_state::reopen() {
  end_cancelled();
  if (state == phase::ending)
    finish_ending();
  else if (!to_replace_.empty())
    replace_next();
  else
    activate();
}

void communicator_state::replace_next() {
  state = phase::replacing;
  auto lost = to_replace_.front();
  proto::SpareRequest request;
  request.set_comm_id(options.id.value);
  request.set_timeout_ns(static_cast<uint64_t>(options.spare_limit.count()));
  *request.mutable_lost() = std::find_if(members.begin(), members.end(), [=](auto& x) { return x.id() == lost; })->metadata;
  std::vector<operation::slot> made; // by operations that run before; `input` is where the output ends
  for (auto* queue : {&operations_, &group_})
    for (auto& op : *queue)
      for (auto& x : op.slots) {
        if (x.device != lost || op.state != operation::phase::running || x.input_bytes == 0)
          continue;
        // Where an earlier operation that runs again writes this input, there is nothing to restore.
        bool made_here = std::any_of(made.begin(), made.end(), [&](auto& earlier) {
          return earlier.output <= x.input && x.input + x.input_bytes <= earlier.input;
        });
        made.push_back({lost, x.output + x.output_bytes, x.output});
        if (made_here)
          continue;
        auto& range = *request.add_inputs();
        range.set_address(x.input);
        range.set_bytes(x.input_bytes);
      }
  if (asked_for_ == lost)
    return; // the answer is under way
  asked_for_ = lost;
  asked_at_ = sequences_;
  auto on_error = [this](const caf::error& problem) {
    abort(async_error_ + "; the coordinator gave no spare: " + render(problem));
  };
  if (!options.coordinator)
    return on_error(make_error(errc::unknown_device, "there is no coordinator"));
  self->request(options.coordinator, options.spare_limit + options.operation_limit, std::move(request))
    .then([this, lost](const proto::SpareResponse& x, const device_handle& handle) { take_spare(x, handle, lost); },
          on_error);
}

void communicator_state::take_spare(const proto::SpareResponse& x, const device_handle& handle, uint64_t lost) {
  asked_for_ = 0;
  if (state == phase::ending || state == phase::aborted)
    return; // the coordinator takes it back when the communicator ends
  if (!x.success())
    return abort(async_error_ + "; it could not be replaced: " + x.error());
  auto place = std::find_if(members.begin(), members.end(), [=](auto& y) { return y.id() == lost; });
  auto old_min = place->metadata.minmemaddr().value();
  *place = {x.device(), handle, suspicion{options.suspect}, {}};
  self->monitor(caf::actor_cast<caf::actor>(handle.device));
  to_replace_.pop_front();
  auto moved = [&](uint64_t address) { return address - old_min + x.device().minmemaddr().value(); };
  for (auto* queue : {&operations_, &group_})
    for (auto& op : *queue)
      for (auto& y : op.slots)
        if (y.device == lost && op.state == operation::phase::running)
          y = {place->id(), moved(y.input), moved(y.output), moved(y.buffer), y.input_bytes, y.output_bytes};
  epoch_reason_ += fmt::format("; device 0x{:x} took its place", place->id());
  for (auto* queue : {&operations_, &group_})
    for (auto& op : *queue)
      if (op.state == operation::phase::running && (!x.inputs_restored() || op.sequence > asked_at_))
        cancel(op, fmt::format("device 0x{:x} replaces device 0x{:x}, but not its input: {}", place->id(), lost,
                               x.inputs_restored() ? "the call came while the device was being replaced"
                                                   : x.inputs_error()));
  quiesce({}); // what was cancelled leaves the streams
}

void communicator_state::activate() {
  state = phase::active;
  proto::Record record;
  auto& opened = *record.mutable_epoch_opened();
  opened.set_comm_id(options.id.value);
  opened.set_epoch(epoch);
  opened.set_reason(std::exchange(epoch_reason_, {}));
  for (auto& x : members)
    opened.add_device_ids(x.id());
  for (auto& op : operations_)
    if (op.state == operation::phase::running && op.attempts > 0)
      opened.add_rerun(op.sequence);
  spdlog::info("communicator {}: epoch {} on {}, {} to run again: {}", options.id.value, epoch,
               counted(members.size(), "device"), counted(static_cast<uint64_t>(opened.rerun_size()), "operation"),
               opened.reason());
  journal(std::move(record));
  announce_members();
  last_progress_ = self->clock().now();
  for (auto& x : members)
    x.arrived = 0;
  for (auto& op : operations_)
    if (op.state == operation::phase::running)
      run(op);
  flush_plans();
  note_ranks();
  serve_calls();
  settle();
}

void communicator_state::abort(const std::string& reason) {
  if (state == phase::ending || state == phase::aborted)
    return;
  state = phase::ending;
  end_reason_ = reason;
  async_error_ = fmt::format("communicator {} has ended: {}", options.id.value, reason);
  group_open_ = false;
  std::move(group_.begin(), group_.end(), std::back_inserter(operations_));
  group_.clear();
  for (auto& op : operations_)
    if (op.state == operation::phase::running)
      cancel(op, async_error_);
  std::erase_if(members, [&](auto& x) { return lost(x.id()); });
  to_replace_.clear();
  fail_calls();
  quiesce(reason);
}

void communicator_state::destroy(const std::string& reason,
                                 caf::typed_response_promise<proto::CommDestroyResponse> promise) {
  destroyers_.push_back(std::move(promise));
  gone_ = true;
  abort(reason);
  finish_ending();
}

void communicator_state::finish_ending() {
  if ((state != phase::ending && state != phase::aborted) || !quiescing_.empty() || !operations_.empty() || splits_ > 0)
    return;
  if (state == phase::ending) {
    state = phase::aborted;
    if (!gone_) {
      proto::Record record;
      record.mutable_communicator_aborted()->set_comm_id(options.id.value);
      record.mutable_communicator_aborted()->set_reason(end_reason_);
      journal(std::move(record));
      spdlog::info("{}", async_error_);
    }
    settle();
  }
  if (destroyers_.empty())
    return;
  announce_members();
  proto::Record record;
  record.mutable_communicator_destroyed()->set_comm_id(options.id.value);
  record.mutable_communicator_destroyed()->set_reason(end_reason_);
  journal(std::move(record));
  flush_records();
  proto::CommDestroyResponse answer;
  answer.set_success(true);
  for (auto& promise : destroyers_)
    promise.deliver(answer);
  destroyers_.clear();
  self->quit();
}

bool communicator_state::lost(uint64_t device) const {
  return std::count(to_replace_.begin(), to_replace_.end(), device) != 0;
}

// -- watching -----------------------------------------------------------------

void communicator_state::keep_ticking() {
  if (ticking_ || !watching())
    return;
  ticking_ = true;
  self->delayed_send(self, options.suspect.interval, atom::tick_v);
}

void communicator_state::tick() {
  ticking_ = false;
  auto now = self->clock().now();
  std::vector<std::pair<uint64_t, std::string>> suspects;
  size_t watched = 0;
  for (auto& x : members)
    if (!lost(x.id())) {
      ++watched;
      if (auto verdict = x.suspect.evaluate(now); verdict.suspected)
        suspects.emplace_back(x.id(), verdict.reason);
    }
  if (!overloaded(suspects.size(), watched, now))
    for (auto& [device, reason] : suspects)
      lose(device, reason, "suspicion", true);
  if (!watching())
    return;
  proto::ProgressRequest request;
  request.set_comm_id(options.id.value);
  request.set_number(++requests_);
  for (auto& x : members)
    if (!lost(x.id())) {
      x.suspect.on_request(requests_, now);
      self->send(caf::actor_cast<stream_actor>(x.handle.stream), request);
    }
  note_moving(now);
  if (now - last_progress_ > options.operation_limit && state == phase::active) {
    auto reason = fmt::format("no progress for {:.1f} s: {}",
                              std::chrono::duration<double>{options.operation_limit}.count(), explain());
    for (auto& op : operations_)
      if (op.state == operation::phase::running)
        cancel(op, reason);
    quiesce(reason);
  }
  keep_ticking();
}

// Devices hang one by one. Where most of them answer late together, the hosts have too much to do, or their network:
// to give them up would leave nobody. They get ten times as long.
bool communicator_state::overloaded(size_t suspects, size_t watched, std::chrono::steady_clock::time_point now) {
  if (2 * suspects <= watched) {
    most_late_since_.reset();
    return false;
  }
  const auto patience = 10 * options.suspect.late_after;
  if (!most_late_since_) {
    most_late_since_ = now;
    spdlog::info("communicator {}: {} of {} devices answer late, as if the hosts or the network were overloaded: none is "
                 "given up for {:.1f} s",
                 options.id.value, suspects, watched, std::chrono::duration<double>{patience}.count());
  }
  return now - *most_late_since_ < patience;
}

void communicator_state::on_progress(const proto::Progress& x) {
  auto i = std::find_if(members.begin(), members.end(), [&](auto& y) { return y.id() == x.device_id(); });
  if (i == members.end())
    return;
  auto now = self->clock().now();
  auto busy_for = std::chrono::nanoseconds{x.busy() ? x.busy_for_ns() : 0};
  i->suspect.on_answer(x.number(), busy_for, now);
  if (x.sequence() != i->latest.sequence() || x.epoch() != i->latest.epoch() || x.round() != i->latest.round()
      || x.doing() != i->latest.doing()) // it tells the pieces of a block, too
    last_progress_ = now;
  i->latest = x;
}

std::string communicator_state::explain() const {
  if (operations_.empty() && !changing())
    return group_.empty() ? "nothing is in flight"
                          : fmt::format("{} calls wait for GroupEnd on communicator {}", group_.size(), options.id.value);
  const auto* op = operations_.empty() ? nullptr : &operations_.front();
  std::vector<std::string> ranks;
  for (size_t rank = 0; rank < members.size(); ++rank) {
    auto& x = members[rank];
    auto doing = lost(x.id())                      ? "lost, waiting for a spare"
                 : quiescing_.count(x.id()) != 0   ? "has not stopped for the new epoch"
                 : op == nullptr                   ? "has stopped"
                 : op->committed.count(x.id()) != 0 ? "done"
                 : op->finished.count(x.id()) != 0 ? "finished"
                 : x.latest.doing().empty()        ? "no word yet"
                                                   : x.latest.doing();
    ranks.push_back(fmt::format("rank {} (device 0x{:x}) {}", rank, x.id(), doing));
  }
  auto first = op == nullptr ? std::string{"its devices change"} : fmt::format("first is #{}", op->sequence);
  return fmt::format("{} operations in flight on communicator {}, epoch {}; {}: {}", operations_.size(),
                     options.id.value, epoch, first, fmt::join(ranks, ", "));
}

} // namespace ringmaster
