// What must hold after every event, and for every decision.
#include "tests/runtime/epochs/epoch_operands.hpp"
#include "tests/runtime/epochs/epoch_world.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <variant>

namespace ringmaster::epoch_tests {

namespace {

/// Numbers, ids and sets of them, as one number.
class mixed {
public:
  template <class... Ts>
  void add(const Ts&... xs) {
    (mix(xs), ...);
  }
  uint64_t value() const { return value_; }

private:
  template <class T>
  void mix(const T& x) {
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      value_ = (value_ ^ static_cast<uint64_t>(x)) * 0x9e3779b97f4a7c15; // each step can be undone: none loses anything
      value_ ^= value_ >> 32;
    } else if constexpr (requires { x.value; }) {
      mix(x.value);
    } else if constexpr (requires { x.second; }) {
      add(x.first, x.second);
    } else {
      mix(x.size());
      for (auto& y : x)
        mix(y);
    }
  }

  uint64_t value_ = 1;
};

} // namespace

void epoch_world::check_rest() {
  auto events = possible();
  bool owed = std::any_of(events.begin(), events.end(), [](auto& x) {
    using kind = event::kind;
    return x.what == kind::notice || x.what == kind::quiesced || x.what == kind::finish || x.what == kind::commit
           || x.what == kind::spare || x.what == kind::no_spare || x.what == kind::move || x.what == kind::moved
           || x.what == kind::let_leave;
  });
  if (owed)
    return;
  bool someone_hangs = std::any_of(streams_.begin(), streams_.end(),
                                   [&](auto& x) { return !x.second.alive && is_there(x.first); });
  if (someone_hangs)
    return; // it will be noticed
  expect(!epochs_.state().is_changing(), "an epoch opens in the end");
  expect(epochs_.operations().idle(), "every operation ends");
  expect(destroyed_ == gone_, "a client that destroys it is answered");
  expect(!epochs_.verdicts().any_open(), "every verdict is given in the end");
  expect(asked_to_leave_.empty(), "a client that wants a member to leave is answered");
}

uint64_t epoch_world::fingerprint() const {
  mixed all;
  all.add(epochs_.state().phase(), epochs_.state().epoch(), asked_for_, next_spare_, moving_, calls_,
          epochs_.state().stop_is_deferred());
  all.add(left_.losses, left_.calls, left_.broken, left_.overdue, left_.aborts, left_.destroys, left_.spares,
          left_.refusals, left_.leaves);
  for (auto& x : epochs_.members().ranks())
    all.add(x.id(), x.lost, epochs_.state().has_stopped(x.id()), epochs_.leaving().contains(x.id()));
  all.add(asked_to_leave_, streams_.size());
  for (auto& [id, x] : streams_)
    all.add(id, x.alive, x.noticed, x.answers, x.walks, x.commits);
  for (auto& op : epochs_.operations().in_flight())
    all.add(op.sequence, op.state, op.epoch, op.slots.size(), op.finished, op.committed);
  return all.value();
}

void epoch_world::take(epoch_change::decisions decisions) {
  for (auto& x : decisions)
    std::visit([this](auto& y) { check(y); }, x);
}

void epoch_world::check(epoch_change::stop_streams& x) {
  expect(x.epoch > stopped_, "epochs only rise");
  stopped_ = x.epoch;
  expect(x.forget == epochs_.state().is_ending(), "streams forget it at its end");
  std::set<device_id> stopped{x.devices.begin(), x.devices.end()};
  for (auto id : stopped)
    expect(lost_.count(id) == 0, "a lost device is not stopped");
  for (auto& rank : epochs_.members().ranks())
    expect((rank.lost || stopped.count(rank.id()) != 0 || epochs_.state().has_stopped(rank.id())), "all others are");
  for (auto id : stopped)
    if (auto& to = streams_[id]; to.alive) { // it stops walking; what it has to commit it commits
      to.walks.clear();
      to.answers.insert(x.epoch);
    }
}

void epoch_world::check(epoch_change::release_operation& x) {
  auto op = epochs_.operations().find(x.sequence);
  decided_.insert(x.sequence);
  if (op == nullptr)
    return; // no rank is left that has to commit
  expect(op->finished.size() == op->slots.size(), "all have finished it");
  for (auto& slot : op->slots)
    if (auto& to = streams_[slot.device]; to.alive)
      to.commits.insert(x.sequence);
}

void epoch_world::check(epoch_change::outputs_changed&) {
  expect(policy_ == proto::REPLACE, "without \"replace\" there are no copies and no spares");
}

void epoch_world::check(epoch_change::operation_ended& x) {
  expect(ended_.insert(x.what.sequence).second, "an operation ends once");
  expect(x.what.sequence != moving_, "it does not end before its data is there");
  expect(!x.what.error == (decided_.count(x.what.sequence) != 0),
         "what was decided does not fail, and nothing else is done");
  expect(x.what.state == (x.what.error ? operation::phase::cancelled : operation::phase::decided),
         "its state is its end");
}

void epoch_world::check(epoch_change::spare_wanted& x) {
  expect(asked_for_ == device_id{}, "one is asked for at a time");
  asked_for_ = id_of(x.lost);
  expect((lost_.count(asked_for_) != 0) != x.leaving, "it is for a lost one, or one that leaves");
  expect(policy_ == proto::REPLACE, "without \"replace\" there are no copies and no spares");
  auto& queue = epochs_.operations().in_flight();
  bool runs = std::any_of(queue.begin(), queue.end(), [](auto& op) { return op.state == operation::phase::running; });
  expect(x.leaving ? x.inputs.size() == 1 && x.inputs[0].bytes == memory_size : x.inputs.empty() != runs,
         "it is to hold what is to run, whenever that was called, and nothing else");
}

void epoch_world::check(epoch_change::epoch_opened& x) {
  expect(!ending_, "no epoch opens after the end");
  expect(x.epoch == stopped_, "it is the one that was announced last");
  expect(!x.reason.empty(), "it has a reason");
  for (auto& rank : epochs_.members().ranks()) {
    expect(lost_.count(rank.id()) == 0, "a lost device does not come back");
    expect(left_for_good_.count(rank.id()) == 0, "a device that has left does not come back");
    expect(streams_[rank.id()].stopped_at == x.epoch, "all members have stopped");
  }
  for (auto& op : epochs_.operations().in_flight())
    if (op.state == operation::phase::running) {
      expect((op.attempts > 0) == (std::count(x.rerun.begin(), x.rerun.end(), op.sequence) != 0),
             "operations that run again are listed");
      begin(op);
    }
}

void epoch_world::check(epoch_change::members_left& x) {
  expect(!x.devices.empty(), "it names members");
  for (auto id : x.devices) {
    expect(asked_to_leave_.erase(id) != 0, "a member that was asked to leave is answered once");
    if (!x.problem)
      left_for_good_.insert(id);
    expect(x.problem || !is_there(id), "a device that has left is no member");
  }
}

void epoch_world::check(epoch_change::end_began& x) {
  expect(!ending_, "it ends once");
  expect(static_cast<bool>(x.error), "it has a reason");
  ending_ = true;
}

void epoch_world::check(epoch_change::communicator_aborted&) {
  expect(ending_, "it has begun to end");
  expect(epochs_.operations().idle(), "it ends after its operations");
}

void epoch_world::check(epoch_change::communicator_gone&) {
  expect(destroyed_, "a client has destroyed it");
  expect(!gone_, "it goes once");
  expect(epochs_.operations().idle(), "it goes after its operations");
  gone_ = true;
}

void epoch_world::check(epoch_change::verdict_given& x) {
  expect(x.what.number() == ++verdicts_, "each verdict is given once, in their order");
  auto& done = x.what.outcome();
  expect(done.ended() ? epochs_.state().is_ending() : done.epoch() == epochs_.state().epoch().value,
         "it says what was done");
  expect(done.ended() || done.ranks() == epochs_.members().ranks().size(), "and over which ranks the group goes on");
  for (auto& culprit : x.what.culprits())
    expect(lost_.contains(device_id{culprit.device_id()}) || x.what.kind() == proto::Verdict::BROKEN,
           "a member that lives is no culprit");
  expect(!epochs_.verdicts().any_open(), "all verdicts are given together");
}

size_t epoch_world::said() const {
  size_t result = 0;
  for (auto& x : epochs_.members().ranks())
    result += epochs_.state().has_stopped(x.id());
  for (auto& op : epochs_.operations().in_flight())
    result += op.finished.size() + op.committed.size() + (op.state == operation::phase::running ? 0 : 1);
  return result;
}

void epoch_world::check_ghosts() {
  auto before = said();
  for (auto& [id, x] : streams_) {
    for (epoch_number epoch{1}; epoch < epochs_.state().epoch(); epoch = epoch.next())
      expect(epochs_.quiesced(id, epoch).empty(), "an old Quiesced does not count");
    if (epochs_.state().has_stopped(id))
      expect(epochs_.quiesced(id, epochs_.state().epoch()).empty(), "a second Quiesced does not count");
    for (auto& op : epochs_.operations().in_flight())
      for (epoch_number epoch{1}; epoch <= epochs_.state().epoch(); epoch = epoch.next())
        if (epoch != op.epoch)
          for (auto phase : {proto::RankReport::FINISHED, proto::RankReport::BROKEN, proto::RankReport::COMMITTED})
            expect(epochs_.reported(report(id, op.sequence, epoch, phase)).empty(), "an old report does not count");
  }
  expect(said() == before, "what is old changes nothing");
}

void epoch_world::expect(bool holds, const char* what) const {
  if (!holds)
    FAIL("not so: ", std::string{what}, "; after ", path());
}

std::string epoch_world::path() const {
  static constexpr const char* names[] = {"fall",      "notice",     "quiesced",   "finish",   "commit",
                                          "break_off", "call",       "overdue",    "abort",    "destroy",
                                          "spare",     "bare_spare", "dead_spare", "no_spare", "no_answer",
                                          "move",      "moved",      "leave",      "let_leave"};
  std::string result;
  for (auto& x : path_)
    result += fmt::format("{} {} {} {}, ", names[static_cast<int>(x.what)], x.device, x.sequence, x.epoch);
  return result;
}

} // namespace ringmaster::epoch_tests
