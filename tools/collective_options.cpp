#include "tools/collective_options.hpp"

#include "messages/errc.hpp"
#include "runtime/bus_bandwidth.hpp"
#include "runtime/reduction.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster {

const char* const collective_options_help =
  R"(  KIND              all_reduce, reduce, broadcast, all_gather, reduce_scatter, all_to_all, gather, scatter,
                    barrier, send_recv
  --ranks N         the world size (8)
  --root R          of reduce, broadcast, gather and scatter; who sends in send_recv (0)
  --peer R          who receives in send_recv (the rank after the root)
  --bytes SIZE      as nccl-tests count: the whole buffer, for all_gather and the like all ranks' blocks together;
                    64K, 1M, 1G are powers of 1024, 1GB is one of 1000 (1M)
  --datatype T      float32, float64, int32, ... (float32)
  --chunk SIZE      the pieces of pipelined algorithms (as the algorithm likes)
)";

void add_collective_options(option_table& table, collective_options& opts, uint32_t ranks_max) {
  table.positional([&opts](const std::string& text) -> caf::error {
    if (opts.kind)
      return make_error(errc::invalid_argument, fmt::format("one collective at a time: \"{}\" is one too many", text));
    auto kind = parse_collective_kind(text);
    if (!kind)
      return std::move(kind.error());
    opts.kind = *kind;
    return caf::none;
  });
  table.text("--algorithm", opts.algorithm);
  table.number("--ranks", opts.ranks, 1, ranks_max);
  table.number("--root", opts.root, 0, ranks_max - 1);
  table.number("--peer", opts.peer, 0, ranks_max - 1);
  table.bytes("--bytes", opts.bytes);
  table.bytes("--chunk", opts.chunk_bytes);
  table.value("--datatype", [&opts](const std::string& text) -> caf::error {
    auto type = parse_datatype(text);
    if (!type)
      return std::move(type.error());
    opts.datatype = *type;
    return caf::none;
  });
}

caf::expected<plan_request> request_of(const collective_options& opts) {
  if (!opts.kind)
    return make_error(errc::invalid_argument, "which collective? all_reduce, for example; --help lists them");
  auto element_bytes = size_of(opts.datatype);
  plan_request request;
  request.world_size = opts.ranks;
  request.root = opts.root;
  request.peer = opts.peer == collective_options::no_peer ? (opts.root + 1) % opts.ranks : opts.peer;
  request.count = opts.count.value_or(count_for_size(*opts.kind, opts.ranks, opts.bytes / element_bytes));
  request.chunk = opts.chunk_bytes / element_bytes;
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
