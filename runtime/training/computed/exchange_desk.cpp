#include "runtime/training/computed/exchange_desk.hpp"

#include "messages/errc.hpp"
#include "runtime/text/quantity_text.hpp"
#include "runtime/training/collective_rules.hpp"

#include <fmt/format.h>

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

std::string exchange_desk::waiting() const {
  for (auto& [where, its] : lines_)
    if (!its.wanted.empty())
      return fmt::format("rank {} waits for rank {} to send it {}", std::get<1>(where), std::get<0>(where),
                         text_of(std::get<2>(where)));
  for (auto& [where, ranks] : meetings_) {
    auto here = std::ranges::find_if(ranks, [](auto& y) { return !y.empty(); });
    if (here == ranks.end())
      continue;
    const auto& x = here->front().about;
    std::string others;
    for (uint32_t i = 0; i < ranks.size(); ++i)
      if (ranks[i].empty())
        others += fmt::format("{}{}", others.empty() ? "" : ", ", x.among.rank(i));
    return fmt::format("rank {} waits for {} {} to call {} of the {}", x.rank,
                       others.find(',') == std::string::npos ? "rank" : "ranks", others, name_of(x.what),
                       text_of(x.argument));
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
