#include "runtime/operations/rank_calls.hpp"

#include "runtime/reduction/reduction.hpp"
#include "runtime/schedule/collective.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ranges>

namespace ringmaster {

namespace {

using part = proto::RankCall::Part;

std::string op_text(const part& x) {
  return x.collective().op() == gpu_sim::USER ? x.collective().user_op() : std::string{name_of(x.collective().op())};
}

/// "8 on rank 0, 2; 9 on rank 1"; nothing if they agree.
template <class Value>
std::optional<std::string> values(const char* what, std::span<const call_part> parts, std::span<const uint32_t> ranks,
                                  Value value) {
  std::map<std::string, std::vector<uint32_t>> by_value;
  for (size_t i = 0; i < parts.size(); ++i)
    by_value[fmt::format("{}", value(parts[i]))].push_back(ranks[i]);
  if (by_value.size() == 1)
    return std::nullopt;
  std::vector<std::string> texts;
  for (auto& [text, holders] : by_value)
    texts.push_back(fmt::format("{} on rank {}", text, fmt::join(holders, ", ")));
  return fmt::format("{}: {}", what, fmt::join(texts, "; "));
}

std::string list_text(const google::protobuf::RepeatedField<uint64_t>& counts) {
  return fmt::format("[{}]", fmt::join(counts, ", "));
}

/// All-to-all with counts: what one rank sends another one must expect.
std::optional<std::string> expected_counts(std::span<const call_part> parts, std::span<const uint32_t> ranks) {
  auto size = static_cast<int>(parts.size());
  for (int s = 0; s < size; ++s) {
    auto& sends = parts[static_cast<size_t>(s)].what.collective().counts();
    for (int r = 0; r < size; ++r) {
      auto& gets = parts[static_cast<size_t>(r)].what.receive_counts();
      if (sends.size() == size && gets.size() == size && sends[r] != gets[s])
        return fmt::format("counts: rank {} sends {} elements to rank {}, which expects {}",
                           ranks[static_cast<size_t>(s)], sends[r], ranks[static_cast<size_t>(r)], gets[s]);
    }
  }
  return std::nullopt;
}

/// All that the calls of one operation have in common.
std::string signature_of(const call_part& x) {
  auto& what = x.what.collective();
  const auto kind = x.what.split() ? -1 : static_cast<int>(what.kind());
  const bool is_transfer = kind == proto::SEND_RECV;
  const auto counts = is_transfer || kind == proto::ALL_TO_ALL ? std::string{} : list_text(what.counts());
  return fmt::format("{} {} {} {} {} {} {} {} {} {}", kind, x.epoch, name_of(what.datatype()), what.count(), counts,
                     reduces(what.kind()) ? op_text(x.what) : "", is_transfer ? 0 : what.root(),
                     !is_transfer && x.what.in_place(), what.algorithm(), what.chunk_count());
}

/// All-to-all with counts: the parts that are in most of the pairs whose counts differ.
std::vector<size_t> odd_counts_of(std::span<const call_part> parts) {
  std::vector<size_t> differences(parts.size());
  for (size_t s = 0; s < parts.size(); ++s)
    for (size_t r = 0; r < parts.size(); ++r) {
      auto& sends = parts[s].what.collective().counts();
      auto& gets = parts[r].what.receive_counts();
      if (static_cast<int>(r) >= sends.size() || static_cast<int>(s) >= gets.size()
          || sends[static_cast<int>(r)] != gets[static_cast<int>(s)])
        ++differences[s], ++differences[r];
    }
  std::vector<size_t> result;
  for (size_t i = 0; i < parts.size(); ++i)
    if (differences[i] == *std::ranges::max_element(differences))
      result.push_back(i);
  return result;
}

} // namespace

std::vector<size_t> odd_ones_of(std::span<const call_part> parts) {
  std::map<std::string, std::vector<size_t>> alike;
  for (size_t i = 0; i < parts.size(); ++i)
    alike[signature_of(parts[i])].push_back(i);
  if (alike.size() == 1)
    return odd_counts_of(parts);
  const auto size = [](auto& x) { return x.second.size(); };
  const auto most = std::ranges::max(alike | std::views::transform(size));
  const bool is_tie = std::ranges::count(alike, most, size) > 1;
  std::vector<size_t> result;
  for (auto& [signature, indices] : alike)
    if (is_tie || indices.size() < most)
      result.insert(result.end(), indices.begin(), indices.end());
  std::ranges::sort(result);
  return result;
}

std::string name_of(const part& what) {
  if (what.split())
    return "split";
  if (what.collective().kind() == proto::SEND_RECV)
    return fmt::format("{} rank {}", what.receives() ? "receive from" : "send to", what.collective().peer());
  return std::string{name_of(what.collective().kind())};
}

std::optional<std::string> difference_of(std::span<const call_part> parts, std::span<const uint32_t> ranks) {
  ensure(!parts.empty() && parts.size() == ranks.size(), "every part has its rank");
  auto& first = parts.front().what;
  auto& asked = first.collective();
  bool transfer = !first.split() && asked.kind() == proto::SEND_RECV;
  std::vector<std::string> found;
  auto compare = [&](const char* what, auto value) {
    if (auto text = values(what, parts, ranks, value))
      found.push_back(std::move(*text));
  };
  if (!transfer)
    compare("call", [](auto& x) { return name_of(x.what); });
  compare("communicator epoch", [](auto& x) { return x.epoch; });
  const auto all = [&] {
    return found.empty() ? std::nullopt : std::optional{fmt::format("{}", fmt::join(found, ", "))};
  };
  if (!found.empty() || first.split())
    return all();
  bool elements = asked.kind() != proto::BARRIER;
  bool v_variant = !transfer && !asked.counts().empty();
  if (elements)
    compare("datatype", [](auto& x) { return name_of(x.what.collective().datatype()); });
  if (!transfer && asked.kind() == proto::ALL_TO_ALL)
    compare("number of counts to send and to receive", [](auto& x) {
      return fmt::format("{} and {}", x.what.collective().counts_size(), x.what.receive_counts_size());
    });
  if (!transfer && asked.kind() == proto::ALL_TO_ALL && asked.counts_size() != first.receive_counts_size())
    found.push_back(fmt::format("{} counts to send, and {} to receive", asked.counts_size(),
                                first.receive_counts_size()));
  if (elements && !v_variant)
    compare("count", [](auto& x) { return x.what.collective().count(); });
  if (!transfer && asked.kind() != proto::ALL_TO_ALL)
    compare("counts", [](auto& x) { return list_text(x.what.collective().counts()); });
  if (reduces(asked.kind()))
    compare("op", [](auto& x) { return op_text(x.what); });
  if (!transfer && has_root(asked.kind()))
    compare("root", [](auto& x) { return x.what.collective().root(); });
  if (!transfer && elements)
    compare("in place", [](auto& x) { return x.what.in_place() ? "yes" : "no"; });
  compare("algorithm", [](auto& x) { return x.what.collective().algorithm(); });
  compare("chunk", [](auto& x) { return x.what.collective().chunk_count(); });
  if (asked.kind() == proto::ALL_TO_ALL)
    if (auto text = expected_counts(parts, ranks))
      found.push_back(std::move(*text));
  return all();
}

proto::CollectiveRequest joined(std::span<const call_part> parts, std::span<const uint32_t> ranks,
                                uint32_t world_size) {
  ensure(!parts.empty() && parts.size() == ranks.size(), "every part has its rank");
  auto& first = parts.front().what;
  proto::CollectiveRequest result;
  auto& what = *result.mutable_collective();
  what = first.collective();
  bool transfer = what.kind() == proto::SEND_RECV;
  if (transfer)
    what.set_root(ranks.front());
  what.set_peer(transfer ? ranks.back() : 0);
  what.clear_factors();
  if (transfer || what.kind() == proto::ALL_TO_ALL)
    what.clear_counts();
  bool outputs = transfer || !first.in_place();
  result.mutable_inputs()->Resize(static_cast<int>(world_size), 0);
  if (outputs)
    result.mutable_outputs()->Resize(static_cast<int>(world_size), 0);
  for (size_t i = 0; i < parts.size(); ++i) {
    auto& x = parts[i].what;
    ensure(ranks[i] < world_size, "a part is of a rank of its epoch");
    const auto rank = static_cast<int>(ranks[i]);
    result.set_inputs(rank, x.input());
    if (outputs)
      result.set_outputs(rank, x.output());
    auto& mine = x.collective();
    if (what.kind() == proto::ALL_TO_ALL && !mine.counts().empty()) {
      what.mutable_counts()->Resize(static_cast<int>(world_size * world_size), 0);
      for (int to = 0; to < std::min(mine.counts_size(), static_cast<int>(world_size)); ++to)
        what.set_counts(rank * static_cast<int>(world_size) + to, mine.counts(to));
    }
    if (reduces(what.kind()) && mine.op() == gpu_sim::PREMUL_SUM) {
      what.mutable_factors()->Resize(static_cast<int>(world_size), 1);
      what.set_factors(rank, mine.factors().empty() ? 1 : mine.factors(0));
    }
  }
  return result;
}

} // namespace ringmaster
