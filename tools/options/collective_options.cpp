#include "tools/options/collective_options.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/reduction/datatypes.hpp"
#include "runtime/reduction/reduction.hpp"
#include "runtime/schedule/bus_bandwidth.hpp"
#include "runtime/schedule/request_of.hpp"
#include "runtime/text/comma_list.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace ringmaster {

namespace {

caf::error invalid_hosts(const std::string& text) {
  return invalid("--hosts: " + text);
}

} // namespace

option& add_hosts_option(option_table& table, std::vector<uint64_t>& hosts, const std::string& says) {
  auto read = [](const std::string& text) -> caf::expected<std::vector<uint64_t>> {
    constexpr uint64_t ranks_max = 1 << 16;
    std::vector<uint64_t> result;
    for (auto part : comma_list(text)) {
      auto number = parse_whole(part, 1, ranks_max);
      if (!number)
        return make_error(
          errc::invalid_argument,
          fmt::format("\"{}\" is neither a number of hosts, such as 4, nor the ranks of each, such as 4,4,2", text));
      result.push_back(*number);
    }
    return result;
  };
  return table.parsed("--hosts", hosts, read)
    .says("H", says + "; H is a number of hosts with equal numbers of ranks, or the ranks of each host, such as 4,4,2");
}

caf::expected<std::vector<uint32_t>> hosts_of_ranks(const std::vector<uint64_t>& hosts, uint32_t ranks) {
  auto sizes = hosts;
  if (hosts.size() == 1) {
    if (ranks % hosts[0] != 0)
      return invalid_hosts(fmt::format(
        "{} cannot fill {} evenly{}", counted(ranks, "rank"), counted(hosts[0], "host"),
        ranks == 1 ? "" : fmt::format("; give the ranks of each host, such as {},{}", ranks - ranks / 2, ranks / 2)));
    sizes.assign(hosts[0], ranks / hosts[0]);
  }
  std::vector<uint32_t> result;
  for (uint32_t host = 0; host < sizes.size() && result.size() <= ranks; ++host)
    result.insert(result.end(), std::min<uint64_t>(sizes[host], ranks + 1), host);
  if (!hosts.empty() && result.size() != ranks)
    return invalid_hosts(fmt::format("the hosts have {} together, and there are {}",
                                     counted(std::accumulate(sizes.begin(), sizes.end(), uint64_t{0}), "rank"), ranks));
  ensure(hosts.empty() || result.size() == ranks, "each rank has a host");
  if (sizes.size() < 2)
    result.clear();
  return result;
}

namespace {

/// "reduce, broadcast, ..."
std::string kinds_with_root() {
  std::string names;
  for (auto kind : collective_kinds())
    if (has_root(kind))
      names += fmt::format("{}{}", names.empty() ? "" : ", ", name_of(kind));
  return names;
}

} // namespace

option& offer_algorithms(option& target, const std::vector<std::string>& words) {
  auto all = words;
  std::map<std::string, std::vector<std::string>> by_kind;
  for (auto& x : algorithms()) {
    if (std::find(all.begin(), all.end(), x.name) == all.end())
      all.emplace_back(x.name);
    by_kind.try_emplace(std::string{name_of(x.kind)}, words).first->second.emplace_back(x.name);
  }
  for (auto& [kind, names] : by_kind)
    target.offers_beside(kind, std::move(names));
  return target.offers(std::move(all));
}

option& add_kind(option_table& table, std::optional<proto::CollectiveKind>& target) {
  std::vector<std::string> names;
  for (auto kind : collective_kinds())
    names.emplace_back(name_of(kind));
  auto set = [&target](const std::string& text) -> caf::error {
    if (target)
      return invalid(fmt::format("one collective at a time: \"{}\" and \"{}\" were given", name_of(*target), text));
    TRY(kind, parse_collective_kind(text));
    target = *kind;
    return caf::none;
  };
  return table.positional("KIND", set).says("{words}").offers(std::move(names));
}

void add_collective_options(option_table& table, collective_options& opts, const ranks_range& ranks) {
  offer_algorithms(table.text("--algorithm", opts.algorithm).says("A", "one of the kind's algorithms"));
  add_kind_and_ranks(table, opts, ranks);
}

void add_kind_and_ranks(option_table& table, collective_options& opts, const ranks_range& ranks) {
  add_kind(table, opts.kind);
  table.number(ranks.option, opts.ranks, ranks.min, ranks.max)
    .says("N", fmt::format("the world size, {} to {}", ranks.min, ranks.max))
    .otherwise("8");
  table.number("--root", opts.root, 0, ranks.max - 1)
    .says("R", fmt::format("of {}, where it is who sends", kinds_with_root()))
    .otherwise("0");
  table.number("--peer", opts.peer, 0, ranks.max - 1)
    .says("R", "who receives in send_recv")
    .otherwise("the rank after the root");
}

void add_chunk_and_datatype(option_table& table, collective_options& opts) {
  table.bytes("--chunk", opts.chunk_bytes)
    .says("SIZE", "the pieces of pipelined algorithms")
    .otherwise("as the network asks for");
  std::vector<std::string> types;
  for (auto& type : datatypes())
    types.emplace_back(type.name);
  table.parsed("--datatype", opts.datatype, parse_datatype)
    .also("-d")
    .says("T", "{words}")
    .offers(std::move(types))
    .otherwise(std::string{name_of(opts.datatype)});
}

void add_size_options(option_table& table, collective_options& opts) {
  table.bytes("--bytes", opts.bytes)
    .says("SIZE",
          "as nccl-tests count: the whole buffer, for all_gather and similar ones all ranks' blocks together, each "
          "rounded down to whole elements; 64K and 64KiB are 65,536, 64KB is 64,000, likewise M and G")
    .otherwise("1M");
  add_chunk_and_datatype(table, opts);
}

caf::error check_has_root(proto::CollectiveKind kind) {
  if (has_root(kind))
    return caf::none;
  return invalid(fmt::format("--root: {} has no root; {} have one", name_of(kind), kinds_with_root()));
}

caf::error check_has_peer(proto::CollectiveKind kind) {
  if (kind == proto::SEND_RECV)
    return caf::none;
  return invalid(fmt::format("--peer: {} has no peer; send_recv has one", name_of(kind)));
}

bool has_data(proto::CollectiveKind kind) {
  return size_count(kind, {.world_size = 1, .count = 1}) != 0;
}

caf::error check_has_data(const char* option, proto::CollectiveKind kind) {
  if (has_data(kind))
    return caf::none;
  return invalid(fmt::format("{}: {} moves no data", option, name_of(kind)));
}

caf::error check_reduces(const char* option, proto::CollectiveKind kind) {
  if (reduces(kind))
    return caf::none;
  return invalid(fmt::format("{}: {} does not reduce", option, name_of(kind)));
}

caf::error check_has_chunks(proto::CollectiveKind kind, const std::string& algorithm) {
  std::string names;
  auto known = false;
  for (auto& x : algorithms())
    if (x.kind == kind) {
      known |= x.name == algorithm;
      if (x.is.in_chunks && x.name == algorithm)
        return caf::none;
      if (x.is.in_chunks)
        names += fmt::format("{}{}", names.empty() ? "" : ", ", x.name);
    }
  if (names.empty())
    return invalid(fmt::format("--chunk: no algorithm of {} cuts its data into pieces", name_of(kind)));
  if (!known)
    return caf::none;
  return invalid(fmt::format("--chunk: {} does not cut its data into pieces; {} of {} do", algorithm, names,
                             name_of(kind)));
}

caf::expected<uint64_t> whole_elements(const char* option, uint64_t bytes, proto::DataType type, uint64_t least) {
  const auto element = size_of(type);
  least = std::max(least, element);
  const auto rest = bytes % element;
  if (rest == 0)
    return bytes / element;
  const auto below = bytes - rest;
  auto right = below < least ? fmt::format("{}", std::max(below + element, least))
                             : fmt::format("{} or {}", below, below + element);
  return invalid(fmt::format("{} {}: not a whole number of {} elements of {} bytes; {} would be", option, bytes,
                             name_of(type), element, right));
}

uint64_t least_bytes(proto::CollectiveKind kind, uint32_t ranks, proto::DataType type) {
  return size_count(kind, {.world_size = ranks, .count = 1}) * size_of(type);
}

caf::error check_not_empty(const char* option, uint64_t bytes, proto::CollectiveKind kind, const plan_request& request,
                           proto::DataType type) {
  if (request.count != 0 || !has_data(kind))
    return caf::none;
  const auto least = least_bytes(kind, request.world_size, type);
  if (least == size_of(type))
    return invalid(fmt::format("{} {}: less than an element of {}, which has {}", option, bytes, name_of(type),
                               counted(least, "byte")));
  return invalid(fmt::format("{} {}: less than an element of {} for each of {}; {} would be one", option, bytes,
                             name_of(type), counted(request.world_size, "rank"), least));
}

caf::expected<plan_request> request_of(const collective_options& opts) {
  constexpr uint64_t default_bytes = 1 << 20;
  if (!opts.kind)
    return invalid("which collective? all_reduce, for example; --help lists them");
  if (opts.root)
    RETURN_ERROR(check_has_root(*opts.kind));
  if (opts.peer)
    RETURN_ERROR(check_has_peer(*opts.kind));
  if (opts.bytes)
    RETURN_ERROR(check_has_data("--bytes", *opts.kind));
  if (opts.chunk || opts.chunk_bytes)
    RETURN_ERROR(check_has_chunks(*opts.kind, opts.algorithm));
  const auto ranks = opts.ranks.value_or(8);
  TRY(elements, whole_elements("--bytes", opts.bytes.value_or(default_bytes), opts.datatype,
                               least_bytes(*opts.kind, ranks, opts.datatype)));
  TRY(chunk, whole_elements("--chunk", opts.chunk_bytes.value_or(0), opts.datatype));
  proto::Collective what;
  what.set_root(opts.root.value_or(0));
  what.set_peer(opts.peer.value_or((what.root() + 1) % ranks));
  what.set_count(opts.count.value_or(count_for_size(*opts.kind, ranks, *elements)));
  what.set_chunk_count(opts.chunk.value_or(*chunk));
  auto request = request_of(what, ranks, 0);
  TRY(hosts, hosts_of_ranks(opts.hosts, ranks));
  request.hosts = std::move(*hosts);
  if (!opts.count)
    RETURN_ERROR(check_not_empty("--bytes", opts.bytes.value_or(default_bytes), *opts.kind, request, opts.datatype));
  RETURN_ERROR(check_request(*opts.kind, request));
  return request;
}

caf::expected<std::vector<const algorithm*>> algorithms_of(const collective_options& opts) {
  std::vector<const algorithm*> result;
  if (!opts.algorithm.empty()) {
    TRY(found, find_algorithm(*opts.kind, opts.algorithm));
    result.push_back(*found);
    return result;
  }
  for (const auto& x : algorithms())
    if (x.kind == *opts.kind)
      result.push_back(&x);
  if (result.empty())
    return invalid(fmt::format("there is no algorithm for {}", name_of(*opts.kind)));
  return result;
}

} // namespace ringmaster
