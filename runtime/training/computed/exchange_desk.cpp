#include "runtime/training/computed/exchange_desk.hpp"

#include "messages/errc.hpp"
#include "runtime/text/quantity_text.hpp"
#include "runtime/training/collective_rules.hpp"

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
  auto& ranks = meetings_[{among.first, among.count, among.stride, x.about.aside}];
  ranks.resize(among.count);
  const auto mine = among.index_of(x.about.rank);
  ranks[mine].push_back(std::move(x));
  const auto turn = ranks[mine].size() - 1;
  for (auto& other : ranks)
    if (other.size() > turn && !match(other[turn].about, ranks[mine][turn].about)) {
      const auto &a = other[turn].about, &b = ranks[mine][turn].about;
      return make_error(errc::invalid_argument, a.rank < b.rank ? differ(a, b) : differ(b, a));
    }
  if (std::ranges::any_of(ranks, [](auto& y) { return y.empty(); }))
    return std::optional<exchange>{};
  exchange all;
  for (auto& each : ranks) {
    all.push_back(std::move(each.front()));
    each.pop_front();
  }
  for (auto& each : all) // of a broadcast its root alone knows
    if (each.about.what != op::broadcast && each.count != all.front().count)
      return invalid(fmt::format("the ranks' models do not match: the {} has {} at rank {}, and {} at rank {}",
                                 text_of(each.about.argument), counted(all.front().count, "element"),
                                 all.front().about.rank, each.count, each.about.rank));
  std::vector<pending*> abouts;
  for (auto& each : all)
    abouts.push_back(&each.about);
  if (auto problem = combine(abouts); !problem.empty())
    return invalid(std::move(problem));
  return std::optional<exchange>{std::move(all)};
}

std::vector<exchange_desk::wait> exchange_desk::waits() const {
  std::vector<wait> result;
  for (auto& [where, its] : lines_) {
    const auto& [from, to, kind, aside] = where;
    if (!its.wanted.empty())
      result.push_back({to, from, aside,
                        fmt::format("rank {} waits for rank {} to send it {}", to, from, text_of(kind))});
  }
  for (auto& [where, ranks] : meetings_) {
    std::vector<uint32_t> late;
    for (uint32_t i = 0; i < ranks.size(); ++i)
      if (ranks[i].empty())
        late.push_back(i);
    for (auto& each : ranks) {
      if (each.empty())
        continue;
      const auto& x = each.front().about;
      std::vector<uint32_t> others;
      for (auto i : late)
        others.push_back(x.among.rank(i));
      result.push_back({x.rank, others.front(), x.aside,
                        fmt::format("rank {} waits for {} {} to call {} of the {}", x.rank,
                                    others.size() > 1 ? "ranks" : "rank", fmt::join(others, ", "), name_of(x.what),
                                    text_of(x.argument))});
    }
  }
  return result;
}

std::string exchange_desk::waiting() const {
  const auto all = waits();
  return all.empty() ? "" : all.front().text;
}

std::string exchange_desk::stuck(const std::function<bool(uint32_t)>& ended) const {
  std::map<uint32_t, const wait*> of;
  const auto all = waits();
  for (auto& each : all) {
    if (ended(each.other))
      return each.text + ", which has ended";
    if (!each.aside)
      of.try_emplace(each.rank, &each);
  }
  for (auto& [first, begun] : of) {
    auto text = begun->text;
    auto next = of.find(begun->other);
    for (size_t steps = 1; next != of.end() && next->first != first && steps < of.size(); ++steps) {
      text += ", " + next->second->text;
      next = of.find(next->second->other);
    }
    if (next != of.end() && next->first == first)
      return text + ": none of them can go on";
  }
  return {};
}

std::string exchange_desk::left_behind() const {
  for (auto& [where, its] : lines_)
    if (!its.sent.empty())
      return fmt::format("rank {} has ended without receiving what rank {} sent: the {}", std::get<1>(where),
                         std::get<0>(where), text_of(its.sent.front().about.argument));
  return {};
}

} // namespace ringmaster::training
