#include "tests/support/histories/client_history.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <set>

namespace ringmaster::test {

namespace {

using kind = client_call::kind;
using outcome = client_call::outcome;
using life = communicator_model::state::life;
using content = communicator_model::place::content;

void mix(size_t& hash, uint64_t x) {
  hash = (hash ^ x) * 0x9E3779B97F4A7C15u + (hash >> 31);
}

bool contains(const client_call::group& x, uint64_t device) {
  return std::ranges::binary_search(x, device);
}

} // namespace

std::string text_of(const client_call& x) {
  constexpr const char* kinds[] = {"make", "write", "run", "read", "status", "destroy", "look"};
  constexpr const char* outcomes[] = {"done", "failed", "failed, inputs may be damaged", "refused", "gone"};
  auto result = fmt::format("{} of communicator {}", kinds[static_cast<int>(x.what)], x.communicator);
  if (x.operation != 0)
    result += fmt::format(", operation {}", x.operation);
  if (x.device != 0)
    result += fmt::format(", device 0x{:x}", x.device);
  result += fmt::format(", {} ns to ", x.times.called);
  if (!x.times.is_known())
    return result + "never: its outcome is not known";
  result += fmt::format("{} ns: {}", x.times.answered, outcomes[static_cast<int>(x.answer)]);
  if (x.sequence != 0)
    result += fmt::format(", number {}", x.sequence);
  if (x.epoch != 0)
    result += fmt::format(", epoch {}", x.epoch);
  if (!x.members.empty())
    result += fmt::format(", members {:x}", fmt::join(x.members, " "));
  if (x.what == kind::read && x.answer == outcome::done)
    result += x.is_input ? ", the input" : x.groups.empty() ? ", neither input nor result" : "";
  for (auto& each : x.groups)
    result += fmt::format(", over {:x}", fmt::join(each, " "));
  return x.reason.empty() ? result : result + ": " + x.reason;
}

size_t communicator_model::hash(const state& x) {
  size_t result = static_cast<size_t>(x.is);
  mix(result, x.latest);
  mix(result, x.epoch);
  for (auto device : x.members)
    mix(result, device);
  for (auto& each : x.places) {
    mix(result, each.operation * 4 + static_cast<uint64_t>(each.has));
    for (auto device : each.ranks)
      mix(result, device);
  }
  return result;
}

namespace {

using state = communicator_model::state;

/// An operation that is taken, and its end.
std::vector<state> run(const state& before, const client_call& call, size_t places_max) {
  if (call.times.is_known() && call.sequence != 0 && call.sequence != before.latest + 1)
    return {};
  std::vector<state> result;
  const auto add = [&](content has, const client_call::group& ranks, uint64_t latest) {
    auto& then = result.emplace_back(before);
    then.latest = latest;
    if (call.operation == 0)
      return; // it is not read
    const auto known = std::ranges::find(then.places, call.operation, &communicator_model::place::operation);
    if (known != then.places.end())
      then.places.erase(known);
    then.places.push_back({call.operation, has, ranks});
    if (then.places.size() > places_max)
      then.places.erase(then.places.begin());
  };
  const auto taken = before.latest + 1;
  const bool may_be_done = !call.times.is_known() || call.answer == outcome::done;
  const bool may_fail = !call.times.is_known() || call.answer == outcome::failed || call.answer == outcome::broken;
  if (may_be_done)
    for (auto& each : call.groups)
      add(content::result, each, taken);
  if (may_fail) {
    const bool is_broken = call.times.is_known() && call.answer == outcome::broken;
    add(is_broken ? content::damaged : content::inputs, {}, taken);
    if (call.times.is_known() && call.sequence == 0) // whether it was taken is not said
      add(is_broken ? content::damaged : content::inputs, {}, before.latest);
    if (!call.times.is_known())
      add(content::damaged, {}, taken);
  }
  return result;
}

std::vector<state> read(const state& before, const client_call& call) {
  const auto its = std::ranges::find(before.places, call.operation, &communicator_model::place::operation);
  const bool fits = its == before.places.end() || its->has == content::inputs ? call.is_input
                    : its->has == content::damaged                            ? true
                    : !contains(its->ranks, call.device)
                      ? true // it was lost
                      : std::ranges::find(call.groups, its->ranks) != call.groups.end();
  return fits ? std::vector{before} : std::vector<state>{};
}

std::vector<state> status(state before, const client_call& call) {
  if (call.epoch < before.epoch || (call.epoch == before.epoch && call.members != before.members))
    return {};
  before.epoch = call.epoch;
  before.members = call.members;
  return {std::move(before)};
}

std::vector<state> make(const client_call& call) {
  state result;
  result.is = life::alive;
  result.may_end = call.may_end;
  result.epoch = 1;
  result.members = call.members;
  return {std::move(result)};
}

} // namespace

std::vector<communicator_model::state> communicator_model::next(const state& before, const client_call& call) {
  if (call.what == kind::make)
    return before.is == life::not_made ? make(call) : std::vector<state>{};
  const bool is_known = call.times.is_known();
  auto ended = before;
  ended.is = life::ended;
  if (is_known && call.answer == outcome::gone) {
    const bool can_be = before.is == life::ended || (before.is == life::alive && before.may_end);
    return can_be ? std::vector{std::move(ended)} : std::vector<state>{};
  }
  if (call.what == kind::write || (is_known && call.answer != outcome::done && call.what != kind::run))
    return {before}; // of a device, which may be lost
  if (call.what == kind::read)
    return read(before, call);
  if (call.what == kind::destroy && before.is == life::ended && before.may_end)
    return {before}; // it had ended by itself
  if (before.is != life::alive)
    return {};
  switch (call.what) {
    case kind::run:
      return is_known && call.answer == outcome::refused ? std::vector{before} : run(before, call, places_max);
    case kind::status: return is_known ? status(before, call) : std::vector{before};
    case kind::destroy: return {std::move(ended)};
    default: return {before}; // it is listed
  }
}

// -- histories -----------------------------------------------------------------------

size_t client_history::begin(client_call x, uint64_t now_ns) {
  x.times = {now_ns, call_times::never};
  calls_.push_back(std::move(x));
  return calls_.size() - 1;
}

client_call& client_history::end(size_t number, uint64_t now_ns) {
  auto& x = calls_.at(number);
  ensure(!x.times.is_known(), "a call is answered once");
  x.times.answered = now_ns;
  return x;
}

void client_history::note_listed(const std::vector<uint64_t>& communicators, uint64_t asked_ns, uint64_t now_ns) {
  listed_ = communicators;
  std::set<uint64_t> known;
  for (auto& x : calls_)
    if (x.what == kind::make && x.communicator != 0)
      known.insert(x.communicator);
  for (auto each : known) {
    const auto number = begin({.what = kind::look, .communicator = each}, asked_ns);
    end(number, now_ns).answer = std::ranges::count(communicators, each) > 0 ? outcome::done : outcome::gone;
  }
}

namespace {

/// What matters of a communicator's calls: those that have no effect and no answer do not, nor what is never read.
std::vector<client_call> what_matters(std::vector<client_call> calls) {
  std::set<uint64_t> read;
  for (auto& x : calls)
    if (x.what == kind::read)
      read.insert(x.operation);
  std::erase_if(calls, [](auto& x) {
    return !x.times.is_known() && x.what != kind::make && x.what != kind::run && x.what != kind::destroy;
  });
  for (auto& x : calls)
    if (x.what == kind::run && !read.contains(x.operation)) {
      x.operation = 0;
      x.groups = {{}};
    }
  return calls;
}

} // namespace

std::string client_history::problem() const {
  auto judged = judge();
  if (judged.problem.empty() && !judged.undecided.empty())
    return fmt::format("the calls of communicator {} have more orders than can be tried",
                       fmt::join(judged.undecided, ", "));
  return std::move(judged.problem);
}

client_history::judgement client_history::judge() const {
  judgement result;
  std::map<uint64_t, std::vector<client_call>> by_communicator;
  size_t may_be_made = 0; // beside those that are known
  for (auto& x : calls_) {
    if (x.times.is_known() && (x.answer == outcome::failed || x.answer == outcome::refused) && x.reason.empty())
      return {"an error without a reason: " + text_of(x), {}};
    if (x.communicator != 0)
      by_communicator[x.communicator].push_back(x);
    else
      may_be_made += x.what == kind::make && !x.times.is_known() ? 1 : 0;
  }
  const auto unknown = static_cast<size_t>(
    std::ranges::count_if(listed_, [&](auto id) { return !by_communicator.contains(id); }));
  if (unknown > may_be_made)
    return {fmt::format("{} communicators are listed that no call has made, and of only {} calls it is not known "
                        "whether they have made one: {}",
                        unknown, may_be_made, fmt::join(listed_, " ")),
            {}};
  for (auto& [id, all] : by_communicator) {
    const auto calls = what_matters(all);
    linearization<communicator_model, client_call> search{calls};
    const auto problem = search.problem();
    if (search.has_given_up())
      result.undecided.push_back(id);
    if (!problem)
      continue;
    auto text = fmt::format(
      "no order explains the calls of communicator {}: after {} of its {} calls none of these can "
      "be the next:",
      id, problem->ordered, calls.size());
    for (auto each : problem->in_flight)
      text += "\n    " + text_of(calls[each]);
    return {std::move(text), {}};
  }
  return result;
}

} // namespace ringmaster::test
