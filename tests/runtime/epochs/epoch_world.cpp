// What may happen next, and what comes of it.
#include "tests/runtime/epochs/epoch_world.hpp"
#include "tests/runtime/epochs/epoch_operands.hpp"

#include <algorithm>
#include <utility>

namespace ringmaster::epoch_tests {

epoch_world::epoch_world(uint32_t ranks, proto::FailurePolicy policy, const budget& limits)
  : epochs_({1}, policy, devices(ranks)), policy_(policy), left_(limits), next_spare_(10) {
  for (uint64_t id = 1; id <= ranks; ++id)
    streams_[{id}];
  apply({event::kind::call});
}

std::vector<epoch_world::event> epoch_world::possible() const {
  using kind = event::kind;
  std::vector<event> result;
  for (auto& [id, x] : streams_) {
    if (x.alive && left_.losses > 0)
      result.push_back({kind::fall, id});
    if (!x.alive && !x.noticed && is_known(id))
      result.push_back({kind::notice, id});
    for (auto epoch : x.answers) // messages in flight arrive, even if their sender has died
      result.push_back({kind::quiesced, id, {}, epoch});
    if (x.alive)
      for (auto& [sequence, epoch] : x.walks) {
        result.push_back({kind::finish, id, sequence});
        if (left_.broken > 0)
          result.push_back({kind::break_off, id, sequence});
      }
    if (x.alive)
      for (auto sequence : x.commits)
        result.push_back({kind::commit, id, sequence});
  }
  if (left_.calls > 0 && !epochs_.state().is_ending())
    result.push_back({kind::call});
  if (left_.overdue > 0)
    for (auto& op : epochs_.operations().in_flight())
      result.push_back({kind::overdue, {}, op.sequence});
  if (left_.aborts > 0)
    result.push_back({kind::abort});
  if (left_.destroys > 0)
    result.push_back({kind::destroy});
  if (asked_for_ != device_id{}) {
    if (left_.spares > 0)
      for (auto how : {kind::spare, kind::bare_spare, kind::dead_spare})
        if (how != kind::dead_spare || left_.losses > 0)
          result.push_back({how});
    if (left_.refusals > 0 || left_.spares == 0)
      for (auto how : {kind::no_spare, kind::no_answer})
        result.push_back({how});
  }
  if (left_.leaves > 0)
    for (auto& rank : epochs_.members().ranks())
      if (is_there(rank.id()))
        result.push_back({kind::leave, rank.id()});
  if (epochs_.can_leave())
    result.push_back({kind::let_leave});
  if (left_.joint && moving_ != sequence_number{})
    result.push_back({kind::moved});
  if (left_.joint && moving_ == sequence_number{} && epochs_.state().phase() == epoch_change::phase::active
      && first_running() != sequence_number{})
    result.push_back({kind::move});
  return result;
}

void epoch_world::apply(const event& x) {
  using kind = event::kind;
  path_.push_back(x);
  switch (x.what) {
    case kind::fall:
      --left_.losses;
      streams_[x.device].alive = false;
      break;
    case kind::notice:
      streams_[x.device].noticed = true;
      lost_.insert(x.device);
      take(epochs_.lost(x.device, "a test"));
      expect(epochs_.lost(x.device, "a test").empty(), "a loss is heard of once");
      break;
    case kind::quiesced:
      streams_[x.device].answers.erase(x.epoch);
      streams_[x.device].stopped_at = std::max(streams_[x.device].stopped_at, x.epoch);
      take(epochs_.quiesced(x.device, x.epoch));
      break;
    case kind::finish: {
      auto epoch = streams_[x.device].walks.extract(x.sequence).mapped();
      take(epochs_.reported(report(x.device, x.sequence, epoch, proto::RankReport::FINISHED)));
      break;
    }
    case kind::break_off: {
      --left_.broken;
      auto epoch = streams_[x.device].walks.extract(x.sequence).mapped();
      take(epochs_.reported(report(x.device, x.sequence, epoch, proto::RankReport::BROKEN)));
      break;
    }
    case kind::commit: {
      streams_[x.device].commits.erase(x.sequence);
      auto op = epochs_.operations().find(x.sequence);
      if (op != nullptr)
        take(epochs_.reported(report(x.device, x.sequence, op->epoch, proto::RankReport::COMMITTED)));
      break;
    }
    case kind::call: {
      if (calls_ > 0)
        --left_.calls;
      ++calls_;
      auto& op = epochs_.operations().add(sum_of(epochs_.members().ranks()), 0);
      if (epochs_.may_start())
        begin(op);
      break;
    }
    case kind::overdue:
      --left_.overdue;
      take(epochs_.overdue({x.sequence}, "1 s", seen("nothing")));
      break;
    case kind::abort:
      --left_.aborts;
      take(epochs_.abort("a test"));
      break;
    case kind::destroy:
      --left_.destroys;
      destroyed_ = true;
      take(epochs_.destroy("a test"));
      break;
    case kind::spare: give_spare(true, true); break;
    case kind::bare_spare: give_spare(false, true); break;
    case kind::dead_spare: give_spare(true, false); break;
    case kind::no_spare:
    case kind::no_answer: {
      left_.refusals -= left_.refusals > 0 ? 1 : 0;
      auto lost = std::exchange(asked_for_, {});
      proto::SpareResponse answer;
      answer.set_error("none is free");
      take(x.what == kind::no_spare ? epochs_.spare(answer, lost) : epochs_.no_spare("no answer"));
      break;
    }
    case kind::move: {
      auto op = epochs_.operations().find(first_running());
      moving_ = op->sequence;
      decided_.insert(moving_);
      take(epochs_.data_moves(*op));
      break;
    }
    case kind::moved:
      take(epochs_.data_moved(std::exchange(moving_, {})));
      take(epochs_.transfer_finished());
      break;
    case kind::leave: {
      --left_.leaves;
      auto& ranks = epochs_.members().ranks();
      bool last = policy_ != proto::REPLACE && std::all_of(ranks.begin(), ranks.end(), [&](auto& y) {
                    return y.id() == x.device || asked_to_leave_.count(y.id()) != 0;
                  });
      auto problem = epochs_.ask_to_leave({x.device}, "a test");
      expect(!problem == !(epochs_.state().is_ending() || policy_ == proto::ABORT || last), "only who can leaves");
      if (!problem)
        asked_to_leave_.insert(x.device);
      break;
    }
    case kind::let_leave:
      for (auto& op : epochs_.operations().in_flight())
        expect(op.attempts == 0, "who leaves has no part in anything");
      take(epochs_.let_leave());
      break;
  }
  check_ghosts();
}

sequence_number epoch_world::first_running() const {
  for (auto& op : epochs_.operations().in_flight())
    if (op.state == operation::phase::running)
      return op.sequence;
  return {};
}

void epoch_world::begin(operation& op) {
  op.begin(epochs_.state().epoch(), static_cast<uint32_t>(epochs_.members().ranks().size()), 0);
  expect(op.slots.size() == epochs_.members().ranks().size(), "an attempt is over all ranks");
  if (left_.joint)
    return;
  for (auto& x : op.slots)
    if (auto& to = streams_[x.device]; to.alive)
      to.walks[op.sequence] = op.epoch;
}

void epoch_world::give_spare(bool restored, bool alive) {
  --left_.spares;
  auto lost = std::exchange(asked_for_, {});
  device_id id{next_spare_++};
  proto::SpareResponse answer;
  answer.set_success(true);
  *answer.mutable_device() = device(id.value).metadata;
  answer.set_inputs_restored(restored);
  answer.set_inputs_error(restored ? "" : "was never copied from the host");
  streams_[id].alive = alive;
  left_.losses -= alive ? 0 : 1;
  given_.insert(id);
  take(epochs_.spare(answer, lost));
}

} // namespace ringmaster::epoch_tests
