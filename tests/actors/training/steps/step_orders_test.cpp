// Every order of losses, joins, leaves, answers and ends of steps, for two and three ranks: all states that a training
// run can reach, each once, with what must hold in each.
#include "actors/training/steps/step_change.hpp"
#include "tests/support/all_orders.hpp"
#include "tests/support/training/training_jobs.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

using namespace ringmaster;
using namespace ringmaster::training;

namespace {

/// How many of each may still happen.
struct step_budget {
  uint32_t exits = 0;     ///< Of a rank's actor.
  uint32_t losses = 0;    ///< That the coordinator reports.
  uint32_t failures = 0;  ///< Of what an attempt needs.
  uint32_t shortages = 0; ///< Of memory.
  uint32_t joins = 0;
  uint32_t leaves = 0;
  uint32_t stops = 0;
  uint32_t waits = 0;      ///< For as long as patience lasts.
  uint32_t bad_closes = 0; ///< Communicators that are not known to have ended.
  uint32_t refusals = 0;
};

enum class step_event_kind {
  ready,
  refuse,
  gathering_timeout,
  exit,
  loss,
  commit,
  fail,
  shortage,
  give_up,
  answer,
  lost_answer,
  close,
  bad_close,
  resume,
  hand_over,
  bad_hand_over,
  finish,
  bad_finish,
  last_snapshot,
  join,
  leave,
  stop,
  limit,
  wait
};

struct step_event {
  step_event_kind what;
  device_id device{};
  uint64_t attempt = 0;
};

/// A run's steps with everything around them: ranks that work, give up and answer late, communicators, the coordinator
/// and the host's snapshots.
class explored_run {
public:
  explored_run(const std::shared_ptr<const training_job>& job, uint32_t ranks, const step_budget& limits)
    : change_(job, ranks, 0, rules()), left_(limits), next_device_(ranks + 1) {
    for (uint64_t id = 1; id <= ranks; ++id) {
      change_.ranks().add(device_id{id});
      change_.ranks().set_connected(device_id{id});
    }
  }

  std::vector<step_event> possible() const {
    using enum step_event_kind;
    std::vector<step_event> result;
    if (change_.progress().is_over())
      return result;
    auto if_left = [&](uint32_t budget, step_event_kind what, device_id device = {}, uint64_t attempt = 0) {
      if (budget > 0)
        result.push_back({what, device, attempt});
    };
    for (auto& each : change_.ranks().members()) {
      if (!each.ready) {
        result.push_back({ready, each.device});
        if_left(left_.refusals, refuse, each.device);
        if (change_.progress().now() == step_change::phase::gathering)
          if_left(left_.waits, gathering_timeout);
      }
      if_left(left_.exits, exit, each.device);
      if_left(left_.losses, loss, each.device);
      if (each.ready && !each.leaves)
        if_left(left_.leaves, leave, each.device);
    }
    if (works() && !change_.progress().ending()) {
      result.push_back({commit});
      if_left(left_.shortages, shortage);
    }
    if (works())
      if_left(left_.failures, fail);
    for (auto& [device, attempt] : giving_up_)
      result.push_back({give_up, device, attempt});
    for (auto& [device, attempt] : answers_) {
      result.push_back({answer, device, attempt});
      if (change_.ranks().find(device) != nullptr)
        if_left(left_.losses, lost_answer, device, attempt);
    }
    for (auto attempt : closing_) {
      result.push_back({close, {}, attempt});
      if_left(left_.bad_closes, bad_close, {}, attempt);
    }
    for (auto attempt : resumes_)
      result.push_back({resume, {}, attempt});
    for (auto attempt : handing_over_) {
      result.push_back({hand_over, {}, attempt});
      if_left(left_.failures, bad_hand_over, {}, attempt);
    }
    for (auto attempt : finishing_) {
      result.push_back({finish, {}, attempt});
      if_left(left_.failures, bad_finish, {}, attempt);
    }
    if (last_snapshot_)
      result.push_back({last_snapshot});
    if (limit_runs_)
      result.push_back({limit});
    if_left(left_.joins, join);
    if_left(left_.stops, stop);
    if (!resumes_.empty())
      if_left(left_.waits, wait);
    return result;
  }

  void apply(const step_event& x);

  /// A run that is not over can always continue without another misfortune.
  void check_rest() const {
    const bool gathers = change_.progress().now() == step_change::phase::gathering;
    expect(change_.progress().is_over() || works() || !giving_up_.empty() || !answers_.empty() || !closing_.empty()
             || !resumes_.empty() || !handing_over_.empty() || !finishing_.empty() || last_snapshot_ || limit_runs_
             || (gathers && !change_.ranks().all_are_ready()),
           "a run waits for something");
  }

  std::string fingerprint() const {
    auto text = change_.state_text();
    auto add_pairs = [&](auto& all) {
      for (auto& [device, attempt] : all)
        text += fmt::format(" {}@{}", device.value, attempt);
      text += ';';
    };
    auto add_numbers = [&](auto& all) {
      for (auto attempt : all)
        text += fmt::format(" {}", attempt);
      text += ';';
    };
    add_pairs(giving_up_);
    add_pairs(answers_);
    add_pairs(working_);
    for (auto* all : {&closing_, &resumes_, &handing_over_, &finishing_})
      add_numbers(*all);
    return text
           + fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {} {}", last_snapshot_, limit_runs_,
                         open_over_.size(), started_, snapshot_, left_.exits, left_.losses, left_.failures,
                         left_.shortages, left_.joins, left_.leaves, left_.stops, left_.waits, left_.bad_closes,
                         left_.refusals, next_device_, now_.time_since_epoch().count());
  }

private:
  using numbers = std::set<uint64_t>;
  using pairs = std::set<std::pair<device_id, uint64_t>>;
  static constexpr caf::timespan limit_of_patience = std::chrono::seconds{60};

  static step_change::rules rules() {
    step_change::rules result;
    result.steps = 2;
    result.attempts_max = 4;
    result.starts_ranks = false;
    result.patience = result.replacement_limit = limit_of_patience;
    return result;
  }

  /// Ranks work on a step, and nothing has been decided about it.
  bool works() const {
    return change_.progress().now() == step_change::phase::stepping && started_ == change_.progress().attempt();
  }

  static std::vector<kept_part> some_part() { return {kept_part{.kind = value_kind::weight}}; }

  step_change::model_location model() const {
    auto missing_without = [&](bool leavers) {
      const auto& all = change_.ranks().members();
      const bool some_has_it = std::ranges::any_of(all,
                                                   [&](auto& x) { return !x.made.empty() && (leavers || !x.leaves); });
      return some_has_it || snapshot_ == change_.progress().step() ? caf::error{}
                                                                   : make_error(errc::device_lost, "weights");
    };
    return {missing_without(true), missing_without(false), snapshot_};
  }

  void take(step_change::decisions all) {
    for (auto& each : all)
      std::visit([this](auto& x) { carry_out(x); }, each);
  }
  void carry_out(const step_change::note& x) { expect(!x.text.empty(), "a note says something"); }
  void carry_out(const step_change::start_step& x) {
    expect(!ended_, "nothing starts after the end");
    expect(x.attempt > started_, "attempts rise");
    expect(x.step == change_.progress().step() && x.step < 2, "a step of the run starts");
    expect(working_.empty(), "no attempt starts before every rank has given up the one before");
    std::set<device_id> ranks;
    for (auto& each : change_.ranks().world()) {
      expect(!gone_.contains(each.device), "a device that was lost takes part no more");
      ranks.insert(each.device);
      working_.emplace(each.device, x.attempt);
    }
    expect(open_over_.empty() || open_over_ == ranks, "communicators are over the ranks of the step");
    expect(x.step == 0 || !model().missing, "a step starts from a model");
    open_over_ = ranks;
    started_ = x.attempt;
  }
  void carry_out(const step_change::abandon_step& x) {
    for (auto device : x.devices) {
      giving_up_.emplace(device, x.attempt);
      answers_.emplace(device, x.attempt);
    }
  }
  void carry_out(const step_change::close_communicators& x) {
    expect(!open_over_.empty(), "communicators that are closed were open");
    closing_.insert(x.attempt);
  }
  void carry_out(const step_change::resume_later& x) {
    expect(resumes_.insert(x.attempt).second, "an attempt is resumed once");
  }
  void carry_out(const step_change::hand_over& x) { handing_over_.insert(x.attempt); }
  void carry_out(const step_change::release_rank& x) {
    expect(working_.lower_bound({x.device, 0}) == working_.upper_bound({x.device, UINT64_MAX}),
           "a rank leaves after it has given up its step");
    gone_.insert(x.device);
  }
  void carry_out(const step_change::stop_rank& x) { forget(x.device); }
  void carry_out(const step_change::search_devices&) {}
  void carry_out(const step_change::take_snapshot&) {}
  void carry_out(const step_change::repeat_snapshot& x) { snapshot_ = model().missing ? snapshot_ : x.step; }
  void carry_out(const step_change::take_final_snapshot& x) { finishing_.insert(x.attempt); }
  void carry_out(const step_change::end_with_snapshot& x) {
    expect(static_cast<bool>(x.why), "a run ends early for a reason");
    if (x.repeated || snapshot_ == x.step)
      return take(change_.end(x.why));
    limit_runs_ = true;
    last_snapshot_ = last_snapshot_ || x.at_once;
  }
  void carry_out(const step_change::take_last_snapshot&) { last_snapshot_ = true; }
  void carry_out(const step_change::end_run&) {
    expect(!std::exchange(ended_, true), "a run ends once");
    expect(change_.progress().is_over(), "a run that ends is over");
  }

  /// Its rank has exited.
  void forget(device_id device) {
    gone_.insert(device);
    std::erase_if(working_, [=](auto& x) { return x.first == device; });
  }

  /// Answers of an older attempt change nothing.
  void check_late_answers() {
    const auto before = change_.state_text();
    if (change_.progress().attempt() == 0)
      return;
    const auto old = change_.progress().attempt() - 1;
    for (uint64_t id = 1; id < next_device_; ++id) {
      expect(change_.gave_up(device_id{id}, old).empty(), "a late answer gives nothing up");
      expect(change_.coordinator_answered(old, device_id{id}, make_error(errc::device_lost, "late"), now_).empty(),
             "a late answer loses nothing");
    }
    expect(change_.communicators_closed(old, caf::none).empty(), "a late answer closes nothing");
    expect(change_.resume(old, model(), now_).empty(), "a late answer resumes nothing");
    expect(change_.handed_over(old, caf::none).empty(), "a late answer hands nothing over");
    expect(change_.state_text() == before, "late answers change nothing");
  }

  void expect(bool holds, const char* what) const {
    if (holds)
      return;
    std::string path;
    for (auto& each : path_)
      path += fmt::format(" {}({}, {})", static_cast<int>(each.what), each.device.value, each.attempt);
    FAIL(what << ": " << change_.state_text() << "; path" << path);
  }

  step_change change_;
  step_budget left_;
  uint64_t next_device_;
  step_change::time_point now_{};
  pairs giving_up_, answers_; ///< By device and attempt, answers that are on their way.
  pairs working_;             ///< Ranks that have not given up their attempt.
  numbers closing_, resumes_, handing_over_, finishing_;
  std::set<device_id> open_over_; ///< The ranks of the open communicators.
  std::set<device_id> gone_;
  uint64_t started_ = 0;  ///< The latest attempt that has started.
  uint64_t snapshot_ = 0; ///< The step of the host's snapshot.
  bool last_snapshot_ = false, limit_runs_ = false, ended_ = false;
  std::vector<step_event> path_;
};

void explored_run::apply(const step_event& x) {
  using enum step_event_kind;
  path_.push_back(x);
  const auto step_before = change_.progress().step();
  const bool model_was_lost = static_cast<bool>(model().missing);
  const auto why = make_error(errc::aborted, "a test");
  switch (x.what) {
    case ready: take(change_.ready(x.device, now_)); break;
    case refuse:
      --left_.refusals;
      take(change_.refused(x.device, make_error(errc::device_lost, "a test"), true, now_));
      break;
    case gathering_timeout:
      --left_.waits;
      take(change_.gathering_timed_out(now_));
      break;
    case exit:
      --left_.exits;
      forget(x.device);
      take(change_.rank_exited(x.device, why, x.device.value % 2 == 0, now_));
      break;
    case loss:
      --left_.losses;
      take(change_.device_lost(x.device, make_error(errc::device_lost, "a test"), now_));
      break;
    case commit: {
      working_.clear();
      std::vector<std::vector<kept_part>> made(change_.ranks().world_size(), some_part());
      take(change_.committed(std::move(made), now_));
      expect(change_.progress().step() == step_before + 1, "a step that is committed counts");
      break;
    }
    case fail:
      --left_.failures;
      take(change_.give_up(why));
      break;
    case shortage:
      --left_.shortages;
      take(change_.rank_failed(make_error(errc::out_of_memory, "a test")));
      break;
    case give_up:
      giving_up_.erase({x.device, x.attempt});
      std::erase_if(working_, [&](auto& y) { return y.first == x.device && y.second < x.attempt; });
      take(change_.gave_up(x.device, x.attempt));
      break;
    case answer:
    case lost_answer:
      answers_.erase({x.device, x.attempt});
      left_.losses -= x.what == lost_answer ? 1 : 0;
      take(change_.coordinator_answered(
        x.attempt, x.device, x.what == answer ? caf::error{} : make_error(errc::device_lost, "a test"), now_));
      break;
    case close:
    case bad_close:
      closing_.erase(x.attempt);
      left_.bad_closes -= x.what == bad_close ? 1 : 0;
      if (x.attempt == change_.progress().attempt())
        open_over_.clear();
      take(change_.communicators_closed(x.attempt, x.what == close ? caf::error{} : why));
      break;
    case resume:
      resumes_.erase(x.attempt);
      take(change_.resume(x.attempt, model(), now_));
      break;
    case hand_over:
    case bad_hand_over:
      handing_over_.erase(x.attempt);
      left_.failures -= x.what == bad_hand_over ? 1 : 0;
      if (x.what == hand_over)
        snapshot_ = change_.progress().step();
      take(change_.handed_over(x.attempt, x.what == hand_over ? caf::error{} : why));
      take(change_.resume(x.attempt, model(), now_));
      break;
    case finish:
    case bad_finish:
      finishing_.erase(x.attempt);
      left_.failures -= x.what == bad_finish ? 1 : 0;
      if (change_.progress().is_current(x.attempt))
        take(x.what == finish ? change_.end(caf::none) : change_.give_up(why));
      break;
    case last_snapshot:
      last_snapshot_ = false;
      expect(static_cast<bool>(change_.progress().ending()), "a last snapshot is for a run that is to end");
      take(change_.end(change_.progress().ending()));
      break;
    case join: {
      --left_.joins;
      const device_id device{next_device_++};
      change_.ranks().add_at(device, change_.ranks().wanted());
      change_.ranks().set_connected(device);
      take(change_.ready(device, now_));
      break;
    }
    case leave:
      --left_.leaves;
      take(change_.asked_to_leave(x.device, "a test"));
      break;
    case stop:
      --left_.stops;
      take(change_.stop(why));
      break;
    case limit:
      limit_runs_ = false;
      take(change_.stop(why));
      break;
    case wait:
      --left_.waits;
      now_ += limit_of_patience;
      break;
  }
  expect(change_.progress().step() >= step_before || model_was_lost || model().missing || x.what == hand_over
           || x.what == bad_hand_over || change_.progress().step() == snapshot_,
         "the step falls only when its model is lost");
  for (auto& each : change_.ranks().members())
    expect(!change_.ranks().is_lost(each.device), "a device that was lost has no rank");
  check_late_answers();
}

/// The number of states that can be reached.
size_t explore_steps(uint32_t ranks, const step_budget& limits, std::string_view strategy = "ddp") {
  const auto job = std::make_shared<const training_job>(small_job(strategy, 2, 4, 1));
  return test::walk_all_orders(explored_run{job, ranks, limits});
}

} // namespace

TEST_CASE("step change: every order of exits and losses repeats the step with the ranks that are left") {
  CHECK(explore_steps(2, {.exits = 2, .waits = 1}) > 100);
  CHECK(explore_steps(2, {.exits = 1, .losses = 1, .failures = 1}) > 100);
  CHECK(explore_steps(3, {.exits = 1, .losses = 1, .failures = 1}) > 100);
}

TEST_CASE("step change: every order of a join, a leave and a loss") {
  CHECK(explore_steps(2, {.exits = 1, .joins = 1, .leaves = 1}) > 100);
  CHECK(explore_steps(2, {.losses = 1, .joins = 1, .leaves = 1}) > 100);
  CHECK(explore_steps(2, {.failures = 1, .joins = 1, .leaves = 2}) > 100);
}

TEST_CASE("step change: every order of a request to stop and what it can meet") {
  CHECK(explore_steps(3, {.exits = 1, .losses = 1, .stops = 2}) > 100);
  CHECK(explore_steps(2, {.joins = 1, .leaves = 1, .stops = 1}) > 100);
  CHECK(explore_steps(2, {.failures = 1, .stops = 1, .bad_closes = 1}) > 100);
}

TEST_CASE("step change: every order in which ranks refuse, are late, or lack memory") {
  CHECK(explore_steps(2, {.exits = 1, .waits = 1, .refusals = 1}) > 50);
  CHECK(explore_steps(3, {.exits = 1, .shortages = 2}) > 50);
  CHECK(explore_steps(3, {.losses = 1, .shortages = 1}, "1f1b") > 50);
}
