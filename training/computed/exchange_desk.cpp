#include "training/computed/exchange_desk.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/text/quantity_text.hpp"
#include "training/language/collective_rules.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace ringmaster::training {

namespace {

std::string differ(const pending& a, const pending& b) {
  return fmt::format("the ranks' collectives do not match: rank {} calls {} of the {}, rank {} {} of the {}", a.rank,
                     name_of(a.what), text_of(a.argument), b.rank, name_of(b.what), text_of(b.argument));
}

} // namespace

pending shown(op what, bool aside, uint32_t rank, uint32_t peer, group among, value_tag argument, form asked) {
  pending result;
  result.what = what;
  result.aside = aside;
  result.rank = rank;
  result.peer = peer;
  result.among = among;
  result.argument = std::move(argument);
  result.results[0].has = asked;
  return result;
}

caf::expected<std::optional<exchange_desk::exchange>> exchange_desk::arrive(arrival x) {
  return is_collective(x.about.what) ? meet(std::move(x)) : pass(std::move(x));
}

caf::expected<std::optional<exchange_desk::exchange>> exchange_desk::pass(arrival x) {
  const auto& about = x.about;
  const bool sends = about.what == op::send;
  const passage where = sends ? passage{about.rank, about.peer, about.argument.kind, about.aside}
                              : passage{about.peer, about.rank, about.argument.kind, about.aside};
  auto& its = lines_[where];
  (sends ? its.sent : its.wanted).push_back(std::move(x));
  if (its.sent.empty() || its.wanted.empty())
    return std::optional<exchange>{};
  ensure(its.sent.size() == 1 || its.wanted.size() == 1, "a send or a receive waits, never both");
  exchange both;
  both.push_back(std::move(its.sent.front()));
  both.push_back(std::move(its.wanted.front()));
  its.sent.pop_front();
  its.wanted.pop_front();
  both[1].about.results[0] = both[0].about.argument;
  both[1].count = both[0].count;
  return std::optional<exchange>{std::move(both)};
}

caf::expected<std::optional<exchange_desk::exchange>> exchange_desk::meet(arrival x) {
  const auto among = x.about.among;
  ensure(among.count > 0, "a group has ranks");
  auto& ranks = meetings_[{among.first, among.count, among.stride, x.about.aside}];
  ranks.resize(among.count);
  const auto mine = among.index_of(x.about.rank);
  ensure(mine < ranks.size(), "the index of a rank is in its group");
  ranks[mine].push_back(std::move(x));
  const auto turn = ranks[mine].size() - 1;
  for (auto& other : ranks)
    if (other.size() > turn && !match(other[turn].about, ranks[mine][turn].about)) {
      const auto &a = other[turn].about, &b = ranks[mine][turn].about;
      return invalid(a.rank < b.rank ? differ(a, b) : differ(b, a));
    }
  if (std::ranges::any_of(ranks, [](auto& y) { return y.empty(); }))
    return std::optional<exchange>{};
  exchange all;
  for (auto& each : ranks) {
    all.push_back(std::move(each.front()));
    each.pop_front();
  }
  for (auto& each : all) // only the root of a broadcast knows the count
    if (each.about.what != op::broadcast && each.count != all.front().count)
      return invalid(fmt::format("the ranks' models do not match: the {} has {} at rank {}, and {} at rank {}",
                                 text_of(each.about.argument), counted(all.front().count, "element"),
                                 all.front().about.rank, each.count, each.about.rank));
  ensure(all.size() == among.count, "all ranks of the group have called the collective");
  std::vector<pending*> abouts;
  for (auto& each : all)
    abouts.push_back(&each.about);
  RETURN_ERROR(combine(abouts));
  return std::optional<exchange>{std::move(all)};
}

std::vector<exchange_desk::wait> exchange_desk::waits() const {
  std::vector<wait> result;
  for (auto& [where, its] : lines_) {
    const auto& [from, to, kind, aside] = where;
    if (!its.wanted.empty())
      result.push_back({to, from, aside, kind, nullptr, nullptr});
  }
  for (auto& [where, ranks] : meetings_) {
    const auto late = std::ranges::find_if(ranks, [](auto& x) { return x.empty(); }) - ranks.begin();
    if (late == static_cast<ptrdiff_t>(ranks.size())) // their calls do not match, and were refused
      continue;
    for (auto& each : ranks)
      if (!each.empty()) {
        const auto& x = each.front().about;
        result.push_back({x.rank, x.among.rank(static_cast<uint32_t>(late)), x.aside, {}, &x, &ranks});
      }
  }
  return result;
}

std::string exchange_desk::description(const wait& x) {
  if (x.meets == nullptr)
    return fmt::format("rank {} waits for rank {} to send it {}", x.rank, x.other, text_of(x.kind));
  std::vector<uint32_t> late;
  for (uint32_t i = 0; i < x.all->size(); ++i)
    if ((*x.all)[i].empty())
      late.push_back(x.meets->among.rank(i));
  return fmt::format("rank {} waits for {} {} to call {} of the {}", x.rank, late.size() > 1 ? "ranks" : "rank",
                     fmt::join(late, ", "), name_of(x.meets->what), text_of(x.meets->argument));
}

std::optional<std::string> exchange_desk::waiting() const {
  const auto all = waits();
  return all.empty() ? std::nullopt : std::optional{description(all.front())};
}

caf::error exchange_desk::stuck(const std::function<bool(uint32_t)>& ended) const {
  auto all = waits();
  std::ranges::stable_sort(all, {}, &wait::rank);
  for (auto& each : all)
    if (ended(each.other))
      return invalid(description(each) + ", which has ended");
  auto wait_of = [&](uint32_t rank) {
    return std::ranges::find_if(all, [=](auto& x) { return x.rank == rank && !x.aside; });
  };
  for (auto& begun : all) {
    if (begun.aside)
      continue;
    std::vector<const wait*> chain{&begun};
    for (auto next = wait_of(begun.other); next != all.end() && chain.size() <= all.size();
         next = wait_of(next->other)) {
      if (next->rank == begun.rank) {
        std::string text;
        for (auto* each : chain)
          text += (text.empty() ? "" : ", ") + description(*each);
        return invalid(text + ": none of them can go on");
      }
      chain.push_back(&*next);
    }
  }
  return caf::none;
}

caf::error exchange_desk::left_behind() const {
  for (auto& [where, its] : lines_)
    if (!its.sent.empty())
      return invalid(fmt::format("rank {} has ended without receiving what rank {} sent: the {}", std::get<1>(where),
                                 std::get<0>(where), text_of(its.sent.front().about.argument)));
  return caf::none;
}

} // namespace ringmaster::training
