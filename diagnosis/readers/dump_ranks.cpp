#include "diagnosis/readers/dump_ranks.hpp"

#include "diagnosis/readers/log_lines.hpp"
#include "messages/errc.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

namespace ringmaster::diagnosis {

namespace {

constexpr size_t places_max = 5; ///< Numbers of a name that are tried.

/// The numbers of a file's name without its folders, the last one first; before them the one after "rank", if any.
struct name_numbers {
  std::optional<uint32_t> after_rank;
  std::vector<uint32_t> from_the_end;
};

name_numbers numbers_of(std::string_view path) {
  name_numbers result;
  auto name = path.substr(path.rfind('/') + 1); // npos + 1 is 0
  for (size_t i = 0; i < name.size();) {
    if (!std::isdigit(static_cast<unsigned char>(name[i]))) {
      ++i;
      continue;
    }
    auto number = leading_number(name.substr(i));
    auto before = name.substr(0, i);
    while (!before.empty() && (before.back() == '_' || before.back() == '-' || before.back() == '.'))
      before.remove_suffix(1);
    if (number && *number < UINT32_MAX) {
      result.from_the_end.insert(result.from_the_end.begin(), static_cast<uint32_t>(*number));
      if (before.ends_with("rank") || before.ends_with("RANK") || before.ends_with("Rank"))
        result.after_rank = static_cast<uint32_t>(*number);
    }
    while (i < name.size() && std::isdigit(static_cast<unsigned char>(name[i])))
      ++i;
  }
  return result;
}

/// Whether the dump's groups allow the rank.
bool allows(const file_evidence& dump, uint32_t rank) {
  for (uint32_t i = 0; i < dump.part.groups.size(); ++i) {
    auto& members = dump.part.groups[i].members;
    if (members.empty())
      continue;
    auto at = std::ranges::find(members, rank);
    if (at == members.end())
      return false;
    auto own = dump.own_index.find(i);
    if (own != dump.own_index.end() && own->second != static_cast<uint32_t>(at - members.begin()))
      return false;
  }
  return true;
}

/// The ranks that the groups allow, two at most.
std::vector<uint32_t> allowed_ranks(const file_evidence& dump) {
  const std::vector<uint32_t>* smallest = nullptr;
  for (auto& group : dump.part.groups)
    if (!group.members.empty() && (smallest == nullptr || group.members.size() < smallest->size()))
      smallest = &group.members;
  std::vector<uint32_t> result;
  if (smallest != nullptr)
    for (auto rank : *smallest)
      if (result.size() < 2 && allows(dump, rank))
        result.push_back(rank);
  return result;
}

std::optional<uint32_t> number_at(const name_numbers& x, size_t place) {
  if (place == 0)
    return x.after_rank;
  return place - 1 < x.from_the_end.size() ? std::optional{x.from_the_end[place - 1]} : std::nullopt;
}

} // namespace

caf::error assign_ranks(std::vector<file_evidence*>& dumps, std::vector<std::string>& remarks) {
  std::vector<file_evidence*> open;
  std::vector<name_numbers> names;
  for (auto* dump : dumps)
    if (!dump->rank) {
      open.push_back(dump);
      names.push_back(numbers_of(dump->name));
    }
  size_t best = 0, best_count = 0;
  for (size_t place = 0; place <= places_max; ++place) {
    std::set<uint32_t> ranks;
    for (size_t i = 0; i < open.size(); ++i)
      if (auto rank = number_at(names[i], place); rank && allows(*open[i], *rank))
        ranks.insert(*rank);
    if (ranks.size() > best_count) {
      best = place;
      best_count = ranks.size();
    }
  }
  for (size_t i = 0; i < open.size(); ++i) {
    if (auto rank = number_at(names[i], best); rank && allows(*open[i], *rank)) {
      open[i]->rank = rank;
      continue;
    }
    auto allowed = allowed_ranks(*open[i]);
    if (allowed.size() != 1)
      return malformed(
        fmt::format("{}: which rank is this dump of? Its name should have the rank as its last number, "
                    "such as nccl_trace_rank_3, and the rank must be a member of the dump's process groups",
                    open[i]->name));
    open[i]->rank = allowed.front();
    remarks.push_back(fmt::format("{} is of rank {}, the only one that its process groups allow", open[i]->name,
                                  allowed.front()));
  }
  return caf::none;
}

} // namespace ringmaster::diagnosis
