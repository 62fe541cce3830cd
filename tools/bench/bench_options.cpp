#include "tools/bench/bench_options.hpp"

#include "actors/communicators/communicator.hpp"
#include "messages/errc.hpp"
#include "runtime/algorithms/registry.hpp"
#include "runtime/schedule/bus_bandwidth.hpp"
#include "runtime/reduction/reduction.hpp"
#include "tools/options/schedule_file.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster {

const char* const bench_help =
  R"(usage: ringmaster bench [KIND] [options]

Runs a collective (all_reduce) over a range of sizes on simulated devices in this process, checks the results, and
prints nccl-tests' columns. The size is what a rank contributes in all, as nccl-tests has it. The last column is the
part of the memory's limit that is reached: what a plain loop on all cores takes that reads all inputs and writes all
outputs once, divided by the time.

  --algorithm A        ring, direct, ... ; auto (the default) takes the best; all tries every one
  --devices N          2 to 1024 (8; on a cluster of other processes as many as are free there, up to 8)
  --min-bytes B        such as 8, 64K, 1M, which are powers of 1024; 64KB, 1MB are of 1000 (8)
  --max-bytes B        (64M)
  --factor F           from size to size (8)
  --datatype T         (float32)
  --op O               (sum)
  --root R             of reduce, broadcast, gather and scatter; who sends in send_recv (0)
  --peer R             who receives in send_recv (the rank after the root)
  --chunk B            pieces of pipelined algorithms; 0: as the algorithm likes (0)
  --schedule FILE      the schedules in FILE, which docs/schedule_format.md explains, in place of an algorithm's. They are
                       proved first. Kind, devices, root and peer are the file's. The sizes are, too, from --min-bytes to
                       --max-bytes where these are given, which must be multiples of the file's: every range is taken
                       so many times as far and as long
  --iterations K       operations in a sample, enqueued back to back, 1024 at most; 0: by size (0)
  --samples S          whose median, p50 and p99 are shown (20)
  --in-place           one buffer a rank
  --deterministic      reductions add in rank order, by every algorithm
  --single             each operation is called and waited for by itself
  --no-memory-limit    leave out the plain loop that shows what the memory can do
  --json FILE          one object a row, too
  --section.key=V      any key of config/caf-application.conf

The last lines say what memory this process has beside the devices' files, and whether every result was right.

Sizes are whole elements; where each rank has a block, they are rounded down to blocks of the same size, and the first
column says to what. The exit status is 0 if every result was right.
)";

namespace {

constexpr uint32_t devices_max = 1024;
constexpr uint64_t bytes_max = uint64_t{1} << 50;

caf::error invalid(std::string text) {
  return make_error(errc::invalid_argument, std::move(text));
}

/// What was told of sizes.
struct size_options {
  std::optional<uint64_t> min_bytes, max_bytes;
};

caf::error check_sizes(const bench_options& x) {
  if (x.min_bytes > x.max_bytes)
    return invalid(fmt::format("--min-bytes {} is more than --max-bytes {}", x.min_bytes, x.max_bytes));
  for (auto [option, bytes] : {std::pair{"--min-bytes", x.min_bytes}, {"--max-bytes", x.max_bytes}})
    if (auto elements = whole_elements(option, bytes, x.datatype); !elements)
      return std::move(elements.error());
  return caf::none;
}

/// The collective and its sizes, as they were told.
caf::error set_collective(bench_options& x, const collective_options& told, const size_options& sizes) {
  x.kind = told.kind.value_or(x.kind);
  x.algorithm = told.algorithm.empty() ? x.algorithm : told.algorithm;
  x.devices = told.ranks.value_or(x.devices);
  x.devices_given = told.ranks.has_value();
  x.root = told.root.value_or(x.root);
  x.min_bytes = sizes.min_bytes.value_or(x.min_bytes);
  x.max_bytes = sizes.max_bytes.value_or(x.max_bytes);
  x.max_bytes_given = sizes.max_bytes.has_value();
  auto whole = told;
  whole.kind = x.kind;
  whole.ranks = x.devices;
  auto request = request_of(whole);
  if (!request)
    return std::move(request.error());
  if (x.algorithm != "auto" && x.algorithm != "all")
    if (auto known = find_algorithm(x.kind, x.algorithm); !known)
      return std::move(known.error());
  if (x.op == gpu_sim::PREMUL_SUM && reduces(x.kind))
    return invalid("--op premul_sum: it wants a factor of each rank, which the bench has no option for");
  x.peer = request->peer;
  x.peer_given = told.peer.has_value();
  x.chunk_count = request->chunk;
  return check_sizes(x);
}

/// The same, as a file has it.
caf::error set_written(bench_options& x, const collective_options& told, const size_options& sizes) {
  auto written = schedules_for(told, "--devices");
  if (!written)
    return std::move(written.error());
  const auto& own = written->request;
  if (own.world_size < 2 || own.world_size > devices_max)
    return invalid(fmt::format("--schedule {}: a world size of {}, but the bench takes 2 to {}", told.schedule,
                               own.world_size, devices_max));
  if (!own.counts.empty())
    return invalid(fmt::format("--schedule {}: it has counts, but the bench gives every rank the same", told.schedule));
  auto own_bytes = size_count(written->kind, own) * size_of(x.datatype);
  x.min_bytes = sizes.min_bytes.value_or(own_bytes);
  x.max_bytes = sizes.max_bytes.value_or(std::max(x.min_bytes, own_bytes));
  if (x.max_bytes > bytes_max)
    return invalid(fmt::format("--schedule {}: {} bytes are more than the bench takes, {}", told.schedule, x.max_bytes,
                               bytes_max));
  for (auto [option, bytes] : {std::pair{"--min-bytes", x.min_bytes}, {"--max-bytes", x.max_bytes}})
    if (auto factor = factor_for(option, bytes, told, *written); !factor)
      return std::move(factor.error());
  if (auto problem = check_sizes(x))
    return problem;
  x.kind = written->kind;
  x.devices = own.world_size;
  x.devices_given = true;
  x.root = own.root;
  x.peer = own.peer;
  x.peer_given = true;
  x.algorithm = algorithm_name_of(told.schedule);
  x.written = std::move(*written);
  return check_proof(told.schedule, *x.written);
}

} // namespace

proto::Collective collective_of(const bench_options& x, uint64_t count) {
  proto::Collective result;
  result.set_kind(x.kind);
  result.set_algorithm(x.algorithm);
  result.set_datatype(x.datatype);
  result.set_op(x.op);
  result.set_count(count);
  result.set_root(x.root);
  result.set_peer(x.peer);
  result.set_chunk_count(x.chunk_count);
  return result;
}

caf::expected<bench_options> parse_bench_options(const std::vector<std::string>& args) {
  bench_options result;
  collective_options told;
  size_options sizes;
  option_table table{"bench"};
  add_collective_options(table, told, devices_max, "--devices");
  table.number("--devices", told.ranks, 2, devices_max);
  table.bytes("--chunk", told.chunk_bytes, bytes_max);
  table.parsed("--datatype", told.datatype, parse_datatype);
  table.text("--schedule", told.schedule);
  table.bytes("--min-bytes", sizes.min_bytes, bytes_max);
  table.bytes("--max-bytes", sizes.max_bytes, bytes_max);
  table.number("--factor", result.factor, 2, 1024);
  table.parsed("--op", result.op, parse_reduce_op);
  table.number("--iterations", result.iterations, 0, communicator_options{}.operations_max);
  table.number("--samples", result.samples, 1, 10'000);
  table.flag("--in-place", result.in_place);
  table.flag("--deterministic", result.deterministic);
  table.flag("--single", result.single);
  table.flag("--no-memory-limit", result.no_memory_limit);
  table.text("--json", result.json);
  if (auto problem = table.read(args))
    return problem;
  result.datatype = told.datatype;
  auto problem = told.schedule.empty() ? set_collective(result, told, sizes) : set_written(result, told, sizes);
  if (problem)
    return problem;
  return result;
}

} // namespace ringmaster
