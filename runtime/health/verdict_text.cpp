#include "runtime/health/verdict_text.hpp"

#include "messages/wire_ids.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <span>
#include <tuple>
#include <vector>

namespace ringmaster {

namespace {

using proto::Verdict;

enum class number_form { decimal, hexadecimal, sequence };

/// "0, 1, 5 to 9".
std::string ranges_text(std::vector<uint64_t> numbers, number_form form = number_form::decimal) {
  const auto one = [=](uint64_t x) {
    return form == number_form::hexadecimal ? fmt::format("0x{:x}", x)
           : form == number_form::sequence  ? fmt::format("#{}", x)
                                            : fmt::format("{}", x);
  };
  std::sort(numbers.begin(), numbers.end());
  std::vector<std::string> parts;
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1)
      ++end;
    if (end - i >= 3)
      parts.push_back(fmt::format("{} to {}", one(numbers[i]), one(numbers[end - 1])));
    else
      for (size_t each = i; each < end; ++each)
        parts.push_back(one(numbers[each]));
    i = end;
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string ranks_words(const std::vector<uint64_t>& ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", ranges_text(ranks));
}

/// Culprits of one process: "ranks 2, 3 (devices 0x3, 0x4, node-2 on hostb, pid 812)".
std::string group_text(const std::vector<const Verdict::Culprit*>& group) {
  std::vector<uint64_t> ranks, devices;
  for (const auto* x : group) {
    ranks.push_back(x->rank());
    devices.push_back(x->device_id());
  }
  auto& first = *group.front();
  const auto place = first.local() || first.node().empty() ? std::string{}
                                                           : ", " + place_text(first.node(), first.host(), first.pid());
  return fmt::format("{} (device{} {}{})", ranks_words(ranks), group.size() == 1 ? "" : "s",
                     ranges_text(devices, number_form::hexadecimal), place);
}

std::vector<std::string> groups_of(const Verdict& x) {
  std::map<std::tuple<std::string, std::string, uint64_t>, size_t> known;
  std::vector<std::vector<const Verdict::Culprit*>> groups;
  for (auto& each : x.culprits()) {
    const bool alone = each.local() || each.node().empty();
    const auto [at, is_new] = known.try_emplace({each.node(), each.host(), each.pid()}, groups.size());
    if (is_new || alone)
      groups.emplace_back();
    groups[alone ? groups.size() - 1 : at->second].push_back(&each);
  }
  std::vector<std::string> result;
  for (auto& group : groups)
    result.push_back(group_text(group));
  return result;
}

std::string operation_name(const Verdict& x) {
  return x.sequence() == 0 ? x.operation() : fmt::format("{} #{}", x.operation(), x.sequence());
}

/// "crashed", with the verb in the plural where `many`.
std::string phrase_of(const Verdict& x, size_t processes) {
  const bool many = x.culprits_size() > 1;
  switch (x.kind()) {
    case Verdict::CRASHED: return "crashed";
    case Verdict::HUNG: return many ? "hang" : "hangs";
    case Verdict::SLOW: return many ? "are slow" : "is slow";
    case Verdict::UNREACHABLE:
      return processes > 1 ? "cannot reach each other" : many ? "are unreachable" : "is unreachable";
    case Verdict::CALLED_ELSE:
      return fmt::format("called something else than {}{}",
                         static_cast<size_t>(x.culprits_size()) == processes && many ? "each other" : "the others",
                         x.operation().empty() ? "" : " in " + operation_name(x));
    case Verdict::BROKEN: return "failed";
    default: return many ? "were lost" : "was lost";
  }
}

/// "rank 3 (device 0x4) has not called all_reduce #17, and waits in communicator 3 for all_reduce #5"
std::string never_called_text(const Verdict& x) {
  std::vector<std::string> result;
  for (auto& each : x.culprits())
    result.push_back(fmt::format("{} has not called {}{}", group_text({&each}), operation_name(x), each.call()));
  return fmt::format("{}", fmt::join(result, ", "));
}

/// "ranks 0, 1 waited for rank 2, rank 3 for rank 0"
std::string waits_text(const Verdict& x) {
  constexpr size_t named_max = 6;
  std::map<std::vector<uint64_t>, std::vector<uint64_t>> waiters; // by whom they wait for
  for (auto& wait : x.waits())
    waiters[{wait.waits_for().begin(), wait.waits_for().end()}].push_back(wait.rank());
  std::vector<std::pair<std::vector<uint64_t>, std::vector<uint64_t>>> edges{waiters.begin(), waiters.end()};
  const auto is_culprit = [&](uint64_t rank) {
    return std::any_of(x.culprits().begin(), x.culprits().end(), [=](auto& y) { return y.rank() == rank; });
  };
  std::stable_partition(edges.begin(), edges.end(), [&](auto& edge) { // the cause first
    return std::any_of(edge.first.begin(), edge.first.end(), is_culprit);
  });
  std::vector<std::string> parts;
  for (auto& [whom, who] : edges) {
    if (parts.size() == named_max)
      break;
    parts.push_back(fmt::format("{} {}for {}", ranks_words(who), parts.empty() ? "waited " : "", ranks_words(whom)));
  }
  if (edges.size() > named_max)
    parts.push_back("and others");
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// "; all_reduce #17 was at round 3 of 6: ranks 0, 1 waited for rank 2"
std::string standing_text(const Verdict& x) {
  const auto waits = waits_text(x);
  const bool is_named = x.kind() == Verdict::NEVER_CALLED || x.kind() == Verdict::CALLED_ELSE || x.operation().empty();
  if (is_named)
    return waits.empty() ? "" : "; " + waits;
  auto result = "; " + operation_name(x);
  if (x.rounds() > 0)
    return fmt::format("{} was at round {} of {}{}{}", result, x.round(), x.rounds(), waits.empty() ? "" : ": ", waits);
  return waits.empty() ? fmt::format("{} was under way", result) : fmt::format("{}: {}", result, waits);
}

template <class Numbers>
std::string operations_words(const Numbers& sequences, const char* verb_one, const char* verb_many) {
  return fmt::format("operation{} {} {}", sequences.size() == 1 ? "" : "s",
                     ranges_text({sequences.begin(), sequences.end()}, number_form::sequence),
                     sequences.size() == 1 ? verb_one : verb_many);
}

std::string outcome_of(const Verdict& x) {
  auto& done = x.outcome();
  std::vector<std::string> result;
  if (!done.spares().empty()) {
    std::vector<uint64_t> spares{done.spares().begin(), done.spares().end()};
    result.push_back(fmt::format("device{} {} took the place", spares.size() == 1 ? "" : "s",
                                 ranges_text(spares, number_form::hexadecimal)));
  }
  if (done.ended())
    result.push_back("the communicator has ended");
  else if (done.epoch() != 0)
    result.push_back(fmt::format("the group goes on in epoch {} with {} rank{}", done.epoch(), done.ranks(),
                                 done.ranks() == 1 ? "" : "s"));
  if (!done.rerun().empty())
    result.push_back(operations_words(done.rerun(), "runs again", "run again"));
  if (!done.failed().empty())
    result.push_back(operations_words(done.failed(), "failed", "failed"));
  if (result.empty())
    switch (x.kind()) {
      case Verdict::SLOW: result.emplace_back("it stays in the group"); break;
      case Verdict::CALLED_ELSE:
      case Verdict::NEVER_CALLED:
        result.emplace_back("the call failed on every rank that made it, and nothing was moved");
        break;
      default: result.emplace_back("the group goes on"); break;
    }
  auto text = fmt::format("{}", fmt::join(result, "; "));
  text.front() = static_cast<char>(text.front() - 'a' + 'A');
  return text;
}

} // namespace

std::string_view name_of(Verdict::Kind kind) {
  switch (kind) {
    case Verdict::CRASHED: return "crashed";
    case Verdict::HUNG: return "hung";
    case Verdict::SLOW: return "slow";
    case Verdict::UNREACHABLE: return "unreachable";
    case Verdict::CALLED_ELSE: return "called_else";
    case Verdict::NEVER_CALLED: return "never_called";
    case Verdict::BROKEN: return "broken";
    default: return "unknown";
  }
}

std::string finding_of(const Verdict& x) {
  const auto groups = groups_of(x);
  if (x.kind() == Verdict::NEVER_CALLED)
    return fmt::format("{}{}{}{}", never_called_text(x), x.evidence().empty() ? "" : "; ", x.evidence(),
                       standing_text(x));
  const auto who = groups.empty() ? std::string{}
                                  : fmt::format("{} {}{}", fmt::join(groups, " and "), phrase_of(x, groups.size()),
                                                x.evidence().empty() ? "" : ": ");
  return fmt::format("{}{}{}", who, x.evidence(), standing_text(x));
}

std::string text_of(const Verdict& x) {
  return fmt::format("{}. {}", finding_of(x), outcome_of(x));
}

} // namespace ringmaster
