// Every order of losses, quiesced answers, spares, reports and aborts, for two and three ranks: all states that a
// communicator can come to, each once, with what must hold in each.
#include "runtime/operations/epoch_change.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <unordered_set>
#include <vector>

using namespace ringmaster;

namespace {

constexpr uint64_t memory_size = 1u << 16;

rank_device device(uint64_t id) {
  rank_device result;
  result.metadata.mutable_deviceid()->set_value(id);
  result.metadata.mutable_minmemaddr()->set_value(id * memory_size);
  result.metadata.mutable_maxmemaddr()->set_value((id + 1) * memory_size);
  return result;
}

std::vector<rank_device> devices(uint32_t ranks) {
  std::vector<rank_device> result;
  for (uint64_t id = 1; id <= ranks; ++id)
    result.push_back(device(id));
  return result;
}

operation sum_of(const std::vector<rank_device>& ranks, bool in_place = true,
                 proto::CollectiveKind kind = proto::ALL_REDUCE) {
  proto::CollectiveRequest request;
  request.mutable_collective()->set_kind(kind);
  request.mutable_collective()->set_count(4);
  for (auto& x : ranks) {
    request.add_inputs(x.metadata.minmemaddr().value() + 64);
    if (!in_place)
      request.add_outputs(x.metadata.minmemaddr().value() + 1024);
  }
  auto made = make_operation(request, kind == proto::ALL_REDUCE ? "ring" : "naive", ranks);
  REQUIRE(made);
  return std::move(*made);
}

proto::RankReport report(device_id device, sequence_number sequence, epoch_number epoch,
                         proto::RankReport::Phase phase) {
  proto::RankReport x;
  x.set_device_id(device.value);
  x.set_sequence(sequence.value);
  x.set_epoch(epoch.value);
  x.set_phase(phase);
  return x;
}

/// What may still happen, each so often.
struct budget {
  uint32_t losses = 2;
  uint32_t calls = 1; ///< Behind the first.
  uint32_t broken = 0;
  uint32_t overdue = 0;
  uint32_t aborts = 0;
  uint32_t destroys = 0;
  uint32_t spares = 0;   ///< That are given.
  uint32_t refusals = 0; ///< Of spares: none is free, or the coordinator does not answer.
  bool joint = false;    ///< Operations are joint ones.
  uint32_t leaves = 0;   ///< Members that are asked to leave.
};

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

/// A communicator's epochs with everything around them: devices that fall silent and are noticed later, streams that
/// stop and report, a coordinator that gives spares or none.
class world {
public:
  struct event {
    enum class kind {
      fall,
      notice,
      quiesced,
      finish,
      commit,
      break_off,
      call,
      overdue,
      abort,
      destroy,
      spare,
      bare_spare,
      dead_spare,
      no_spare,
      no_answer,
      move,
      moved,
      leave,
      let_leave
    };
    kind what;
    device_id device = {};
    sequence_number sequence = {};
    epoch_number epoch = {};
  };

  world(uint32_t ranks, proto::FailurePolicy policy, const budget& limits)
    : epochs_({1}, policy, devices(ranks)), policy_(policy), left_(limits), next_spare_(10) {
    for (uint64_t id = 1; id <= ranks; ++id)
      streams_[{id}];
    apply({event::kind::call});
  }

  std::vector<event> possible() const {
    using kind = event::kind;
    std::vector<event> result;
    for (auto& [id, x] : streams_) {
      if (x.alive && left_.losses > 0)
        result.push_back({kind::fall, id});
      if (!x.alive && !x.noticed && is_known(id))
        result.push_back({kind::notice, id});
      for (auto epoch : x.answers) // those that are under way come, whoever falls
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
    if (left_.calls > 0 && !epochs_.ending())
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
      for (auto& rank : epochs_.ranks())
        if (is_there(rank.id()))
          result.push_back({kind::leave, rank.id()});
    if (epochs_.can_leave())
      result.push_back({kind::let_leave});
    if (left_.joint && moving_ != sequence_number{})
      result.push_back({kind::moved});
    if (left_.joint && moving_ == sequence_number{} && epochs_.state() == epoch_change::phase::active
        && first_running() != sequence_number{})
      result.push_back({kind::move});
    return result;
  }

  void apply(const event& x) {
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
        auto& op = epochs_.operations().add(sum_of(epochs_.ranks()), 0);
        if (epochs_.begins())
          begin(op);
        break;
      }
      case kind::overdue:
        --left_.overdue;
        take(epochs_.overdue({x.sequence}, "1 s", "nothing"));
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
        take(epochs_.data_rests());
        break;
      case kind::leave: {
        --left_.leaves;
        auto& ranks = epochs_.ranks();
        bool last = policy_ != proto::REPLACE && std::all_of(ranks.begin(), ranks.end(), [&](auto& y) {
                      return y.id() == x.device || asked_to_leave_.count(y.id()) != 0;
                    });
        auto problem = epochs_.ask_to_leave({x.device}, "a test");
        expect(problem.empty() == !(epochs_.ending() || policy_ == proto::ABORT || last), "only who can leaves");
        if (problem.empty())
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

  /// Nothing is left that somebody who lives owes: whoever waits has been answered.
  void check_rest() {
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
      return; // he will be noticed
    expect(!epochs_.changing(), "an epoch opens in the end");
    expect(epochs_.operations().idle(), "every operation ends");
    expect(destroyed_ == gone_, "whoever wants it gone hears so");
    expect(asked_to_leave_.empty(), "whoever wants a member to leave is answered");
  }

  /// All that the future depends on.
  uint64_t fingerprint() const {
    mixed all;
    all.add(epochs_.state(), epochs_.epoch(), asked_for_, next_spare_, moving_, calls_, epochs_.must_rest());
    all.add(left_.losses, left_.calls, left_.broken, left_.overdue, left_.aborts, left_.destroys, left_.spares,
            left_.refusals, left_.leaves);
    for (auto& x : epochs_.ranks())
      all.add(x.id(), x.lost, epochs_.has_stopped(x.id()), epochs_.is_leaving(x.id()));
    all.add(asked_to_leave_, streams_.size());
    for (auto& [id, x] : streams_)
      all.add(id, x.alive, x.noticed, x.answers, x.walks, x.commits);
    for (auto& op : epochs_.operations().in_flight())
      all.add(op.sequence, op.state, op.epoch, op.slots.size(), op.finished, op.committed);
    return all.value();
  }

private:
  /// A device with its stream.
  struct stream {
    bool alive = true;
    bool noticed = false;
    std::set<epoch_number> answers;                ///< Whose Quiesced is under way.
    std::map<sequence_number, epoch_number> walks; ///< What it runs, and the epoch of the plan.
    std::set<sequence_number> commits;             ///< What it was told to put in place.
    epoch_number stopped_at{1};
  };

  bool is_there(device_id id) const { return epochs_.is_there(id); }
  /// Whether the monitor of this device would tell the communicator.
  bool is_known(device_id id) const { return id.value < 10 || given_.count(id) != 0; }

  sequence_number first_running() const {
    for (auto& op : epochs_.operations().in_flight())
      if (op.state == operation::phase::running)
        return op.sequence;
    return {};
  }

  void begin(operation& op) {
    op.begin(epochs_.epoch(), static_cast<uint32_t>(epochs_.ranks().size()), 0);
    expect(op.slots.size() == epochs_.ranks().size(), "an attempt is over all ranks");
    if (left_.joint)
      return;
    for (auto& x : op.slots)
      if (auto& to = streams_[x.device]; to.alive)
        to.walks[op.sequence] = op.epoch;
  }

  void give_spare(bool restored, bool alive) {
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

  void take(epoch_change::decisions decisions) {
    for (auto& x : decisions)
      std::visit([this](auto& y) { check(y); }, x);
  }

  void check(epoch_change::stop_streams& x) {
    expect(x.epoch > stopped_, "epochs only rise");
    stopped_ = x.epoch;
    expect(x.forget == epochs_.ending(), "streams forget it at its end");
    std::set<device_id> told{x.devices.begin(), x.devices.end()};
    for (auto id : told)
      expect(lost_.count(id) == 0, "who was lost is not asked");
    for (auto& rank : epochs_.ranks())
      expect((rank.lost || told.count(rank.id()) != 0 || epochs_.has_stopped(rank.id())), "everybody else is");
    for (auto id : told)
      if (auto& to = streams_[id]; to.alive) { // it stops walking; what it has to commit it commits
        to.walks.clear();
        to.answers.insert(x.epoch);
      }
  }
  void check(epoch_change::release_operation& x) {
    auto op = epochs_.operations().find(x.sequence);
    decided_.insert(x.sequence);
    if (op == nullptr)
      return; // nobody is left who has to commit
    expect(op->finished.size() == op->slots.size(), "all have finished it");
    for (auto& slot : op->slots)
      if (auto& to = streams_[slot.device]; to.alive)
        to.commits.insert(x.sequence);
  }
  void check(epoch_change::outputs_changed&) {
    expect(policy_ == proto::REPLACE, "else nobody keeps copies, or gives spares");
  }
  void check(epoch_change::operation_ended& x) {
    expect(ended_.insert(x.what.sequence).second, "an operation ends once");
    expect(x.what.sequence != moving_, "it does not end before its data is there");
    expect(x.error.empty() == (decided_.count(x.what.sequence) != 0),
           "what was decided does not fail, and nothing else is done");
    expect(x.what.state == (x.error.empty() ? operation::phase::decided : operation::phase::cancelled),
           "its state is its end");
  }
  void check(epoch_change::spare_wanted& x) {
    expect(asked_for_ == device_id{}, "one is asked for at a time");
    asked_for_ = id_of(x.lost);
    expect((lost_.count(asked_for_) != 0) != x.leaving, "it is for a lost one, or one that leaves");
    expect(policy_ == proto::REPLACE, "else nobody keeps copies, or gives spares");
    auto& queue = epochs_.operations().in_flight();
    bool runs = std::any_of(queue.begin(), queue.end(), [](auto& op) { return op.state == operation::phase::running; });
    expect(x.leaving ? x.inputs.size() == 1 && x.inputs[0].bytes == memory_size : x.inputs.empty() != runs,
           "it is to hold what is to run, whenever that was called, and nothing else");
  }
  void check(epoch_change::epoch_opened& x) {
    expect(!ending_, "behind the end nothing opens");
    expect(x.epoch == stopped_, "it is the one that was announced last");
    expect(!x.reason.empty(), "it has a reason");
    for (auto& rank : epochs_.ranks()) {
      expect(lost_.count(rank.id()) == 0, "who was lost does not come back");
      expect(left_for_good_.count(rank.id()) == 0, "nor does who has left");
      expect(streams_[rank.id()].stopped_at == x.epoch, "everybody has stopped");
    }
    for (auto& op : epochs_.operations().in_flight())
      if (op.state == operation::phase::running) {
        expect((op.attempts > 0) == (std::count(x.rerun.begin(), x.rerun.end(), op.sequence) != 0),
               "what runs again is told");
        begin(op);
      }
  }
  void check(epoch_change::members_left& x) {
    expect(!x.devices.empty(), "it is of somebody");
    for (auto id : x.devices) {
      expect(asked_to_leave_.erase(id) != 0, "it was asked to, and is answered once");
      if (x.problem.empty())
        left_for_good_.insert(id);
      expect(!x.problem.empty() || !is_there(id), "who has left is no member");
    }
  }
  void check(epoch_change::end_began& x) {
    expect(!ending_, "it ends once");
    expect(!x.error.empty(), "it has a reason");
    ending_ = true;
  }
  void check(epoch_change::communicator_aborted&) {
    expect(ending_, "it has begun to end");
    expect(epochs_.operations().idle(), "it ends behind its operations");
  }
  void check(epoch_change::communicator_gone&) {
    expect(destroyed_, "somebody wants it gone");
    expect(!gone_, "it goes once");
    expect(epochs_.operations().idle(), "it goes behind its operations");
    gone_ = true;
  }

  /// How much has been said so far.
  size_t said() const {
    size_t result = 0;
    for (auto& x : epochs_.ranks())
      result += epochs_.has_stopped(x.id());
    for (auto& op : epochs_.operations().in_flight())
      result += op.finished.size() + op.committed.size() + (op.state == operation::phase::running ? 0 : 1);
    return result;
  }

  /// What carries an older epoch, or comes twice, changes nothing.
  void check_ghosts() {
    auto before = said();
    for (auto& [id, x] : streams_) {
      for (epoch_number epoch{1}; epoch < epochs_.epoch(); epoch = epoch.next())
        expect(epochs_.quiesced(id, epoch).empty(), "an old Quiesced does not count");
      if (epochs_.has_stopped(id))
        expect(epochs_.quiesced(id, epochs_.epoch()).empty(), "a second Quiesced does not count");
      for (auto& op : epochs_.operations().in_flight())
        for (epoch_number epoch{1}; epoch <= epochs_.epoch(); epoch = epoch.next())
          if (epoch != op.epoch)
            for (auto phase : {proto::RankReport::FINISHED, proto::RankReport::BROKEN, proto::RankReport::COMMITTED})
              expect(epochs_.reported(report(id, op.sequence, epoch, phase)).empty(), "an old report does not count");
    }
    expect(said() == before, "what is old changes nothing");
  }

  void expect(bool holds, const char* what) const {
    if (!holds)
      FAIL("not so: ", std::string{what}, "; behind ", path());
  }

  std::string path() const {
    static constexpr const char* names[] = {"fall",      "notice",     "quiesced",   "finish",   "commit",
                                            "break_off", "call",       "overdue",    "abort",    "destroy",
                                            "spare",     "bare_spare", "dead_spare", "no_spare", "no_answer",
                                            "move",      "moved",      "leave",      "let_leave"};
    std::string result;
    for (auto& x : path_)
      result += fmt::format("{} {} {} {}, ", names[static_cast<int>(x.what)], x.device, x.sequence, x.epoch);
    return result;
  }

  epoch_change epochs_;
  proto::FailurePolicy policy_;
  budget left_;
  std::map<device_id, stream> streams_;
  std::set<device_id> lost_, given_, asked_to_leave_, left_for_good_;
  std::set<sequence_number> decided_, ended_;
  device_id asked_for_; ///< A spare, for this lost device.
  uint64_t next_spare_;
  epoch_number stopped_{1};
  sequence_number moving_;
  uint32_t calls_ = 0;
  bool ending_ = false, destroyed_ = false, gone_ = false;
  std::vector<event> path_; ///< What has happened.
};

/// All states that can be reached. Returns how many there are.
size_t explore(uint32_t ranks, proto::FailurePolicy policy, const budget& limits) {
  std::unordered_set<uint64_t> seen; // two states with one fingerprint would only be fewer cases
  std::vector<world> open;
  open.emplace_back(ranks, policy, limits);
  while (!open.empty()) {
    auto now = std::move(open.back());
    open.pop_back();
    now.check_rest();
    for (auto& event : now.possible()) {
      auto next = now;
      next.apply(event);
      if (seen.insert(next.fingerprint()).second)
        open.push_back(std::move(next));
    }
  }
  return seen.size();
}

} // namespace

// Behind every event come the ghosts of all epochs before: a stale Quiesced that counted would open an epoch over
// streams that still write.
TEST_CASE("epoch change: every order of losses, reports and answers leaves the survivors a result") {
  for (uint32_t ranks : {2, 3}) {
    CAPTURE(ranks);
    CHECK(explore(ranks, proto::SHRINK, {.losses = ranks, .calls = 3 - ranks}) > 100);
    CHECK(explore(ranks, proto::SHRINK, {.losses = 1, .calls = 3 - ranks, .broken = 1, .overdue = 1}) > 100);
  }
}

TEST_CASE("epoch change: every order of a loss and the end of a communicator ends whoever waits") {
  for (uint32_t ranks : {2, 3})
    for (auto policy : {proto::SHRINK, proto::ABORT, proto::REPLACE}) {
      CAPTURE(ranks);
      CAPTURE(policy);
      CHECK(explore(ranks, policy,
                    {.losses = 1, .calls = 3 - ranks, .aborts = 1, .destroys = 1, .spares = 1, .refusals = 1})
            > 100);
    }
}

// Among the spares are bare ones, which come without the inputs: they cancel what runs, and nothing that is decided.
TEST_CASE("epoch change: every order of losses and spares that are given, refused, bare, or dead") {
  for (uint32_t ranks : {2, 3}) {
    CAPTURE(ranks);
    CHECK(explore(ranks, proto::REPLACE, {.losses = 2, .calls = 3 - ranks, .spares = 2, .refusals = 1}) > 1000);
  }
}

TEST_CASE("epoch change: every order of losses and members that leave, who go when nothing is under way") {
  for (uint32_t ranks : {2, 3})
    for (auto policy : {proto::SHRINK, proto::ABORT, proto::REPLACE}) {
      CAPTURE(ranks);
      CAPTURE(policy);
      CHECK(explore(ranks, policy, {.losses = 1, .calls = 3 - ranks, .spares = 1, .refusals = 1, .leaves = 2}) > 100);
      CHECK(explore(ranks, policy, {.losses = 0, .calls = 1, .aborts = 1, .spares = 1, .leaves = 1}) > 50);
    }
}

TEST_CASE("epoch change: every order of losses and data of joint operations on its way") {
  for (uint32_t ranks : {2, 3})
    for (auto policy : {proto::SHRINK, proto::ABORT, proto::REPLACE}) {
      CAPTURE(ranks);
      CAPTURE(policy);
      CHECK(explore(ranks, policy,
                    {.losses = 2, .calls = 3 - ranks, .overdue = 1, .aborts = 1, .spares = 1, .joint = true})
            > 100);
    }
}

// Else the host would restore a spare from copies that the device has not held since.
TEST_CASE("epoch change: what a failed operation may have written in part is told before it ends") {
  for (bool in_place : {false, true}) {
    CAPTURE(in_place);
    epoch_change x{{1}, proto::REPLACE, devices(2)};
    auto& op = x.operations().add(sum_of(x.ranks(), in_place), 0);
    op.begin({1}, 2, 0);
    auto told = x.reported(report({1}, {1}, {1}, proto::RankReport::BROKEN));
    for (uint64_t id : {1, 2})
      for (auto& more : x.quiesced({id}, x.epoch()))
        told.push_back(more);
    std::vector<std::string> order;
    for (auto& y : told)
      if (auto changed = std::get_if<epoch_change::outputs_changed>(&y)) {
        REQUIRE(changed->ranges.size() == 2);
        CHECK(changed->ranges[1].address == 2 * memory_size + 1024);
        CHECK(changed->ranges[1].bytes == 32);
        order.push_back("changed");
      } else if (std::get_if<epoch_change::operation_ended>(&y)) {
        order.push_back("ended");
      }
    // In place a result is put into the shadow of its buffer first: what lies there is the input still.
    CHECK(order == (in_place ? std::vector<std::string>{"ended"} : std::vector<std::string>{"changed", "ended"}));
  }
}

TEST_CASE("epoch change: an operation whose root is lost fails, and says so; the others run again") {
  epoch_change x{{1}, proto::SHRINK, devices(3)};
  for (auto kind : {proto::BROADCAST, proto::ALL_REDUCE})
    x.operations().add(sum_of(x.ranks(), false, kind), 0).begin({1}, 3, 0);
  auto told = x.lost({1}, "a test");
  REQUIRE(told.size() == 1);
  auto& stop = std::get<epoch_change::stop_streams>(told[0]);
  CHECK(stop.devices == std::vector<device_id>{{2}, {3}});
  CHECK(stop.cancelled == std::vector<sequence_number>{{1}});
  CHECK(x.quiesced({2}, {2}).empty());
  told = x.quiesced({3}, {2});
  REQUIRE(told.size() == 2);
  auto& ended = std::get<epoch_change::operation_ended>(told[0]);
  CHECK(ended.error == "operation #1: its root, rank 0 (device 0x1), was lost");
  CHECK(ended.what.code == errc::device_lost);
  auto& opened = std::get<epoch_change::epoch_opened>(told[1]);
  CHECK(opened.rerun == std::vector<sequence_number>{{2}});
  CHECK(opened.reason == "rank 0 (device 0x1) was lost: a test");
}

TEST_CASE("epoch change: who leaves in good order is not said to be lost, and the others go on as behind a loss") {
  epoch_change x{{1}, proto::SHRINK, devices(3)};
  CHECK(!x.lost({1}, "it was shut down", true).empty());
  CHECK(x.async_error() == "rank 0 (device 0x1) left: it was shut down");
  CHECK(x.ranks().size() == 2);
}

TEST_CASE("epoch change: what runs when the last device is lost ends as device_lost, when it is aborted as aborted") {
  for (bool abort : {false, true}) {
    CAPTURE(abort);
    epoch_change x{{1}, proto::SHRINK, devices(1)};
    x.operations().add(sum_of(x.ranks(), false), 0).begin({1}, 1, 0);
    auto told = abort ? x.abort("a test") : x.lost({1}, "a test");
    if (abort)
      for (auto& more : x.quiesced({1}, x.epoch()))
        told.push_back(more);
    auto expected = abort ? errc::aborted : errc::device_lost;
    CHECK(x.end_code() == expected);
    size_t ended = 0;
    for (auto& y : told)
      if (auto operation = std::get_if<epoch_change::operation_ended>(&y)) {
        ++ended;
        CHECK(operation->what.code == expected);
      }
    CHECK(ended == 1);
  }
}

TEST_CASE(
  "epoch change: a result that goes with its rank is missing, but not in the host's batch where the ranks called") {
  for (bool of_host : {false, true})
    for (bool by_ranks : {false, true}) {
      CAPTURE(of_host);
      CAPTURE(by_ranks);
      epoch_change x{{1}, proto::REPLACE, devices(2)};
      x.batch_began(of_host);
      x.operations().add(sum_of(x.ranks()), by_ranks ? operation::rank_groups : 0).begin({1}, 2, 0);
      for (auto phase : {proto::RankReport::FINISHED, proto::RankReport::COMMITTED})
        for (uint64_t id : {1, 2})
          x.reported(report({id}, {1}, {1}, phase));
      CHECK(x.operations().idle());
      x.lost({2}, "a test");
      x.quiesced({1}, {2});
      proto::SpareResponse spare;
      spare.set_success(true);
      *spare.mutable_device() = device(3).metadata;
      x.spare(spare, {2});
      CHECK(x.without_results() == (of_host && by_ranks ? std::set<device_id>{} : std::set<device_id>{{3}}));
    }
}

TEST_CASE("epoch change: a spare is to hold what runs again, but not what an earlier operation makes anew") {
  epoch_change x{{1}, proto::REPLACE, devices(2)};
  auto first = sum_of(x.ranks(), false);
  auto second = first;
  for (auto& slot : second.slots)
    slot.input = slot.output, slot.output += 1024;
  x.operations().add(std::move(first), 0).begin({1}, 2, 0);
  x.operations().add(std::move(second), 0).begin({1}, 2, 0);
  x.lost({2}, "a test");
  auto told = x.quiesced({1}, {2});
  REQUIRE(told.size() == 1);
  auto& wanted = std::get<epoch_change::spare_wanted>(told[0]);
  CHECK(wanted.lost.deviceid().value() == 2);
  REQUIRE(wanted.inputs.size() == 1);
  CHECK(wanted.inputs[0].address == 2 * memory_size + 64);
}

TEST_CASE("epoch change: a spare is to hold the input of a call that came while the others were being stopped") {
  for (bool in_place : {false, true}) {
    CAPTURE(in_place);
    epoch_change x{{1}, proto::REPLACE, devices(3)};
    x.lost({2}, "a test");
    auto& op = x.operations().add(sum_of(x.ranks(), in_place), 0);
    CHECK(op.slots[1].input_bytes == 32);
    CHECK(op.slots[1].output_bytes == 32);
    CHECK(x.quiesced({1}, {2}).empty());
    auto told = x.quiesced({3}, {2});
    REQUIRE(told.size() == 1);
    auto& wanted = std::get<epoch_change::spare_wanted>(told[0]);
    REQUIRE(wanted.inputs.size() == 1);
    CHECK(wanted.inputs[0].device == device_id{2});
    CHECK(wanted.inputs[0].address == 2 * memory_size + 64);
    CHECK(wanted.inputs[0].bytes == 32);
  }
}

TEST_CASE("epoch change: while a rank waits for a spare, its addresses are looked at like anybody's") {
  epoch_change x{{1}, proto::REPLACE, devices(2)};
  x.lost({2}, "a test");
  proto::CollectiveRequest request;
  request.mutable_collective()->set_kind(proto::ALL_REDUCE);
  request.mutable_collective()->set_count(4);
  request.add_inputs(memory_size + 64);
  auto without = make_operation(request, "ring", x.ranks());
  REQUIRE(!without);
  CHECK(code_of(without.error()) == errc::invalid_argument);
  request.add_inputs(3 * memory_size - 8);
  auto beyond = make_operation(request, "ring", x.ranks());
  REQUIRE(!beyond);
  CHECK(code_of(beyond.error()) == errc::out_of_range);
}

TEST_CASE("epoch change: of a rank that was dropped, a call for an older epoch may say anything") {
  epoch_change x{{1}, proto::SHRINK, devices(3)};
  x.lost({2}, "a test");
  x.quiesced({1}, {2});
  x.quiesced({3}, {2});
  auto then = x.ranks_now({1});
  REQUIRE(then.size() == 3);
  CHECK(!then[0].dropped);
  CHECK(then[1].dropped);
  CHECK(!then[2].dropped);
  proto::CollectiveRequest request;
  request.mutable_collective()->set_kind(proto::ALL_REDUCE);
  request.mutable_collective()->set_count(4);
  for (auto address : {memory_size + 64, uint64_t{0}, 3 * memory_size + 64})
    request.add_inputs(address);
  auto op = make_operation(request, "ring", then);
  REQUIRE(op);
  CHECK(op->slots[1].input_bytes == 0);
  CHECK(op->drop({2}) == "");
}

TEST_CASE("epoch change: where members may have lost each other's words, what runs runs again over all of them") {
  using decision_kind = epoch_change;
  epoch_change epochs{{1}, proto::SHRINK, devices(3)};
  CHECK(epochs.way_lost("nodes a and b have no direct way").empty()); // nothing is under way
  auto& op = epochs.operations().add(sum_of(epochs.ranks()), 0);
  op.epoch = epochs.epoch();
  op.attempts = 1;
  auto told = epochs.way_lost("nodes a and b have no direct way");
  REQUIRE(told.size() == 1);
  auto stop = std::get<decision_kind::stop_streams>(told[0]);
  CHECK(stop.epoch == epoch_number{2});
  CHECK(stop.devices.size() == 3);
  CHECK(stop.cancelled.empty());
  CHECK(epochs.way_lost("once more").empty()); // they are being stopped
  for (uint64_t id : {1, 2, 3})
    told = epochs.quiesced({id}, {2});
  REQUIRE(told.size() == 1);
  auto opened = std::get<decision_kind::epoch_opened>(told[0]);
  CHECK(opened.reason == "nodes a and b have no direct way");
  CHECK(opened.rerun == std::vector{op.sequence});
  CHECK(epochs.ranks().size() == 3);
  CHECK(epochs.async_error().empty()); // nobody was lost
}

TEST_CASE("epoch change: all losses are named, of very many the latest and how many there were before") {
  epoch_change epochs{{1}, proto::SHRINK, devices(30)};
  for (uint64_t id = 1; id <= 2; ++id)
    epochs.lost({id}, "killed");
  CHECK(epochs.async_error() == "rank 0 (device 0x1) was lost: killed; rank 1 (device 0x2) was lost: killed");
  for (uint64_t id = 3; id <= 20; ++id)
    epochs.lost({id}, "killed");
  CHECK(epochs.async_error().starts_with("after 4 earlier losses: rank 4 (device 0x5) was lost: killed; "));
  CHECK(epochs.async_error().ends_with("rank 19 (device 0x14) was lost: killed"));
}
