#include "tools/options/collective_options.hpp"

#include "messages/errc.hpp"
#include "runtime/schedule/bus_bandwidth.hpp"
#include "runtime/schedule/request_of.hpp"
#include "runtime/reduction/reduction.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster {

const char* const collective_options_help =
  R"(  KIND              all_reduce, reduce, broadcast, all_gather, reduce_scatter, all_to_all, gather, scatter,
                    barrier, send_recv
  --ranks N         the world size (8)
  --root R          of reduce, broadcast, gather and scatter; who sends in send_recv (0)
  --peer R          who receives in send_recv (the rank after the root)
  --bytes SIZE      as nccl-tests count: the whole buffer, for all_gather and the like all ranks' blocks together,
                    each rounded down to whole elements; 64K, 1M, 1G are powers of 1024, 64KB, 1MB, 1GB of 1000 (1M)
  --datatype T      float32, float64, int32, ... (float32)
  --chunk SIZE      the pieces of pipelined algorithms (as the algorithm likes)
)";

namespace {

caf::error invalid(std::string text) {
  return make_error(errc::invalid_argument, std::move(text));
}

/// "reduce, broadcast, ..."
std::string kinds_with_root() {
  std::string names;
  for (auto kind : collective_kinds())
    if (has_root(kind))
      names += fmt::format("{}{}", names.empty() ? "" : ", ", name_of(kind));
  return names;
}

} // namespace

void add_kind(option_table& table, std::optional<proto::CollectiveKind>& target) {
  table.positional([&target](const std::string& text) -> caf::error {
    if (target)
      return invalid(fmt::format("one collective at a time: \"{}\" and \"{}\" were given", name_of(*target), text));
    auto kind = parse_collective_kind(text);
    if (!kind)
      return std::move(kind.error());
    target = *kind;
    return caf::none;
  });
}

void add_collective_options(option_table& table, collective_options& opts, uint64_t ranks_max,
                            const char* ranks_option) {
  add_kind(table, opts.kind);
  table.text("--algorithm", opts.algorithm);
  table.number(ranks_option, opts.ranks, 1, ranks_max);
  table.number("--root", opts.root, 0, ranks_max - 1);
  table.number("--peer", opts.peer, 0, ranks_max - 1);
}

void add_size_options(option_table& table, collective_options& opts) {
  table.bytes("--bytes", opts.bytes);
  table.bytes("--chunk", opts.chunk_bytes);
  table.parsed("--datatype", opts.datatype, parse_datatype);
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

caf::expected<uint64_t> whole_elements(const char* option, uint64_t bytes, proto::DataType type) {
  auto element = size_of(type);
  if (auto rest = bytes % element; rest != 0)
    return invalid(fmt::format("{} {}: not a whole number of {} elements of {} bytes; {} or {} would be", option, bytes,
                               name_of(type), element, bytes - rest, bytes - rest + element));
  return bytes / element;
}

caf::expected<plan_request> request_of(const collective_options& opts) {
  constexpr uint64_t default_bytes = 1 << 20;
  if (!opts.kind)
    return invalid("which collective? all_reduce, for example; --help lists them");
  if (opts.root)
    if (auto problem = check_has_root(*opts.kind))
      return problem;
  if (opts.peer)
    if (auto problem = check_has_peer(*opts.kind))
      return problem;
  auto elements = whole_elements("--bytes", opts.bytes.value_or(default_bytes), opts.datatype);
  if (!elements)
    return std::move(elements.error());
  auto chunk = whole_elements("--chunk", opts.chunk_bytes.value_or(0), opts.datatype);
  if (!chunk)
    return std::move(chunk.error());
  const auto ranks = opts.ranks.value_or(8);
  proto::Collective what;
  what.set_root(opts.root.value_or(0));
  what.set_peer(opts.peer.value_or((what.root() + 1) % ranks));
  what.set_count(opts.count.value_or(count_for_size(*opts.kind, ranks, *elements)));
  what.set_chunk_count(opts.chunk.value_or(*chunk));
  auto request = request_of(what, ranks, 0);
  if (auto problem = check_request(*opts.kind, request))
    return problem;
  return request;
}

caf::expected<std::vector<const algorithm*>> algorithms_of(const collective_options& opts) {
  std::vector<const algorithm*> result;
  if (!opts.algorithm.empty()) {
    auto found = find_algorithm(*opts.kind, opts.algorithm);
    if (!found)
      return std::move(found.error());
    result.push_back(*found);
    return result;
  }
  for (const auto& x : algorithms())
    if (x.kind == *opts.kind)
      result.push_back(&x);
  if (result.empty())
    return make_error(errc::invalid_argument, fmt::format("there is no algorithm for {}", name_of(*opts.kind)));
  return result;
}

} // namespace ringmaster
