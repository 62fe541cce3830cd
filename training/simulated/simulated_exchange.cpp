// Where ranks meet: messages from one to another, and collectives.
#include "messages/errc.hpp"
#include "training/language/collective_rules.hpp"
#include "training/simulated/simulated_world.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster::training {

namespace {

constexpr size_t meetings_noted = 8; ///< A rank's own; few have more.

/// Whether what a rank waits for is what is sent.
bool takes(const pending& x, const pending& sent) {
  return x.what == op::receive && x.peer == sent.rank && x.argument.kind == sent.argument.kind && x.aside == sent.aside
         && (x.begun || !x.aside);
}

} // namespace

std::deque<inbox::message>& rank_clock::inbox_of(uint32_t sender, value_kind kind, bool of_second) {
  for (auto& x : inboxes)
    if (x.sender == sender && x.kind == kind && x.aside == of_second)
      return x.sent;
  return inboxes.emplace_back(inbox{sender, kind, of_second, {}}).sent;
}

void simulated_world::arrange(uint32_t hop) {
  arranged_ = true;
  const auto together = std::max(together_, 1u);
  if (world_size() % hop == 0 && hop % together == 0)
    ready_.arrange(together, hop);
}

void simulated_world::send(pending& x) {
  if (!arranged_)
    arrange(x.peer > x.rank ? x.peer - x.rank : x.rank - x.peer);
  auto begun = clock_of(x);
  take_place(x);
  inbox::message sent{x.argument, costs_.leaves_at_end() ? clock_of(x) : begun};
  auto& receiver = ranks_[x.peer];
  auto* front = receiver.beside.empty() ? nullptr : receiver.beside.front();
  auto* waiting = x.aside ? front : receiver.waits;
  if (waiting == nullptr || !takes(*waiting, x)) {
    receiver.inbox_of(x.rank, x.argument.kind, x.aside).push_back(std::move(sent));
    return;
  }
  deliver(*waiting, sent);
  end_later(*waiting);
}

bool simulated_world::receive(pending& x) {
  auto& sent = ranks_[x.rank].inbox_of(x.peer, x.argument.kind, x.aside);
  if (sent.empty())
    return false;
  deliver(x, sent.front());
  sent.pop_front();
  return true;
}

void simulated_world::deliver(pending& x, const inbox::message& arrived) {
  auto& clock = clock_of(x);
  clock = std::max(clock, arrived.at);
  x.argument = x.results[0] = arrived.what;
  take_place(x);
}

meeting& simulated_world::meeting_of(const pending& x) {
  const meeting_key key{x.among, x.aside};
  auto& known = ranks_[x.rank].meetings;
  for (auto& [of, its] : known)
    if (of == key)
      return *its;
  auto& found = meetings_[key];
  found.ranks.resize(x.among.count);
  if (known.size() < meetings_noted)
    known.emplace_back(key, &found);
  return found;
}

bool simulated_world::meet(pending& x) {
  auto& all = meeting_of(x);
  all.ranks[x.among.index_of(x.rank)] = &x;
  if (all.count++ == 0)
    all.earliest = &x;
  if (together_ == 0 && x.among.stride == 1)
    together_ = x.among.count;
  if (!match(*all.earliest, x)) {
    auto& other = **std::ranges::find_if(all.ranks, [&](auto* y) { return y != nullptr && !match(*y, x); });
    auto& first = other.rank < x.rank ? other : x;
    auto& second = other.rank < x.rank ? x : other;
    fail(x.rank,
         invalid(fmt::format("the ranks' collectives do not match: rank {} calls {} of the {}, rank {} {} of the {}",
                             first.rank, name_of(first.what), text_of(first.argument), second.rank,
                             name_of(second.what), text_of(second.argument))));
    return false;
  }
  if (all.count < x.among.count || !hold(all))
    return false;
  all.count = 0;
  for (auto*& each : all.ranks)
    if (auto* there = std::exchange(each, nullptr); there != &x)
      end_later(*there);
  return true;
}

bool simulated_world::hold(const meeting& all) {
  if (auto problem = combine(all.ranks)) {
    fail(all.ranks.front()->rank, std::move(problem));
    return false;
  }
  double latest = 0;
  for (auto* each : all.ranks)
    latest = std::max({latest, clock_of(*each), ranks_[each->rank].link});
  const auto& first = *all.ranks.front();
  const auto& known = first.what == op::broadcast ? *all.ranks[first.among.index_of(first.peer)] : first;
  auto duration = costs_.time_of(known, world_size());
  if (first.what == op::all_to_all) // ranks may bring and take different numbers of samples
    for (auto* each : all.ranks)
      duration = std::max(duration, costs_.time_of(*each, world_size()));
  for (auto* each : all.ranks) {
    clock_of(*each) = latest;
    take_place(*each, duration);
    ranks_[each->rank].link = latest + duration;
  }
  return true;
}

} // namespace ringmaster::training
