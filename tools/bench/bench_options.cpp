#include "tools/bench/bench_options.hpp"

#include "actors/communicators/communicator.hpp"
#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/algorithms/registry.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/reduction/reduction.hpp"
#include "runtime/schedule/bus_bandwidth.hpp"
#include "runtime/schedule/request_of.hpp"
#include "tools/options/reduce_op_option.hpp"
#include "tools/options/schedule_file.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster {

namespace {

constexpr uint64_t bench_bytes_max = uint64_t{1} << 50;

/// The first of the sizes from `bytes` on, each larger by the factor, with an element for each rank.
uint64_t first_size(const bench_options& x, uint64_t bytes) {
  if (has_data(x.kind))
    while (count_for_size(x.kind, x.devices, bytes / size_of(x.datatype)) == 0)
      bytes *= x.factor;
  return bytes;
}

} // namespace

void bench_arguments::add_to(option_table& table) {
  auto& x = result_;
  table.about(
    "Measures a collective over a range of sizes on simulated devices, in this process or in another cluster, checks "
    "the results, and prints the places of the ranks and nccl-tests' columns. Sizes count as in nccl-tests. The last "
    "column is the reached part of the memory's limit: the time of a plain loop on all cores that reads all inputs and "
    "writes all outputs once, divided by the time. It is omitted if ranks are on other hosts.");
  add_collective_options(table, settings_, {.max = devices_max, .min = devices_min, .option = "--devices"});
  table.positional().otherwise("all_reduce");
  table.option_named("--devices").otherwise("8, or device.count if that is given; on another cluster all free devices");
  offer_algorithms(table.option_named("--algorithm"), {"auto", "all"})
    .says("A", "ring, direct, ...; auto picks the best, all measures every one")
    .otherwise("auto");
  table.bytes("--min-bytes", min_bytes_, bench_bytes_max)
    .also("-b")
    .says("SIZE", "the smallest size; 64K and 64KiB are 65,536, 64KB is 64,000")
    .otherwise("8, or an element for each rank");
  table.bytes("--max-bytes", max_bytes_, bench_bytes_max)
    .also("-e")
    .says("SIZE", "the largest size")
    .otherwise(size_text(x.max_bytes));
  table.number("--factor", x.factor, 2, 1024).also("-f").says("F", "the factor from size to size");
  add_chunk_and_datatype(table, settings_);
  add_reduce_op(table, op_).also("-o");
  add_schedule_option(table, settings_.schedule);
  table.number("--iterations", x.iterations, 1, 1'000'000)
    .also("-n")
    .says("K", fmt::format("operations of a sample, enqueued back to back; after each {} the bench waits for them",
                           communicator_options{}.operations_max))
    .otherwise("by size");
  table.number("--warmup", x.warmups, 0, 10'000).also("-w").says("W", "warm-up samples");
  table.number("--samples", x.samples, 1, 10'000).says("S", "samples, of which median, p50 and p99 are shown");
  table.flag("--in-place", x.in_place).says("input and output share a buffer");
  table.flag("--uneven", x.uneven)
    .says("measures the v-variant: rank 0's block is empty, the last rank's is twice the mean");
  table.flag("--deterministic", x.deterministic).says("every algorithm reduces in rank order");
  table.flag("--single", x.single).says("waits for each operation before the next one");
  table.flag("--no-memory-limit", x.no_memory_limit).says("omits the plain loop for the memory's limit");
  table.flag("--wide", x.wide)
    .says("shows all columns; lines of at most 100 columns, or of the terminal's, leave out root, redop, type, p50, "
          "p99, limit, count and algbw, in this order and as far as necessary");
  table.file("--json", x.json)
    .says("FILE", "also writes a JSON object for each row, with node, host and device of each rank");
  table.closing(
    "With --schedule the size is the file's, or its multiples from --min-bytes to --max-bytes.\n\n"
    "The last lines are the memory of this process without the devices' files, whether every result was right, and the "
    "average bus bandwidth.\n\n"
    "Sizes are whole elements. If each rank has a block, they are rounded down to blocks of the same size, which the "
    "first column shows. The exit status is 0 if every result was right.");
  table.common({"--algorithm", "--devices", "--min-bytes", "--max-bytes", "--factor", "--datatype", "--op",
                "--iterations", "--wide", "--json"});
  table.add_example("ringmaster bench -b 8 -e 64M -f 2", "the sizes of nccl-tests");
  table.add_example("ringmaster bench broadcast --algorithm all --json rows.json",
                    "every algorithm; `ringmaster chart` draws the rows");
  table.add_example("caf-run --local 4 -- ringmaster bench", "on all devices of four node processes");
}

uint32_t bench_arguments::fewest_devices() const {
  return settings_.ranks.value_or(
    std::max({devices_min, settings_.root.value_or(0) + 1, settings_.peer.value_or(0) + 1}));
}

caf::error bench_arguments::take_device_count(uint64_t count) {
  if (count < devices_min || count > devices_max)
    return invalid(fmt::format("--device.count={}: the bench takes {} to {} devices", count, devices_min, devices_max));
  if (settings_.ranks && *settings_.ranks != count)
    return invalid(fmt::format("--device.count={} and --devices {}: give one of them", count, *settings_.ranks));
  settings_.ranks = static_cast<uint32_t>(count);
  return caf::none;
}

caf::error bench_arguments::take_sizes() {
  auto& x = result_;
  if (x.min_bytes > x.max_bytes)
    return invalid(fmt::format("--min-bytes {} is more than --max-bytes {}", x.min_bytes, x.max_bytes));
  for (auto [option, bytes] : {std::pair{"--min-bytes", x.min_bytes}, {"--max-bytes", x.max_bytes}}) {
    TRY(elements, whole_elements(option, bytes, x.datatype, least_bytes(x.kind, x.devices, x.datatype)));
    plan_request request{.world_size = x.devices, .count = count_for_size(x.kind, x.devices, *elements)};
    RETURN_ERROR(check_not_empty(option, bytes, x.kind, request, x.datatype));
  }
  return caf::none;
}

/// Blocks that grow from rank to rank, and have `count` elements on average. Of an all_to_all every rank sends and
/// receives the same number of elements.
google::protobuf::RepeatedField<uint64_t> uneven_counts(const bench_options& x, uint64_t count) {
  auto of = [&](uint64_t rank) {
    const uint64_t last = x.devices - 1;
    return 2 * rank == last  ? count
           : 2 * rank < last ? 2 * count * rank / last
                             : 2 * count - 2 * count * (last - rank) / last;
  };
  google::protobuf::RepeatedField<uint64_t> result;
  for (uint32_t from = 0; from < (x.kind == proto::ALL_TO_ALL ? x.devices : 1); ++from)
    for (uint32_t rank = 0; rank < x.devices; ++rank)
      result.Add(of((from + rank) % x.devices));
  return result;
}

/// The collective and its sizes, as given.
caf::error bench_arguments::take_collective(uint32_t devices) {
  auto& x = result_;
  x.kind = settings_.kind.value_or(x.kind);
  x.algorithm = settings_.algorithm.empty() ? x.algorithm : settings_.algorithm;
  x.devices = settings_.ranks.value_or(devices);
  x.root = settings_.root.value_or(x.root);
  x.devices_given = settings_.ranks.has_value();
  x.max_bytes_given = max_bytes_.has_value();
  x.min_bytes = min_bytes_.value_or(first_size(x, bench_options{}.min_bytes));
  x.max_bytes = max_bytes_.value_or(x.max_bytes);
  auto whole = settings_;
  whole.kind = x.kind;
  whole.ranks = x.devices;
  TRY(request, request_of(whole));
  if (x.algorithm != "auto" && x.algorithm != "all")
    if (auto known = find_algorithm(x.kind, x.algorithm); !known)
      return std::move(known.error());
  x.peer = request->peer;
  x.chunk_count = request->chunk;
  return take_sizes();
}

/// The same, as a file has it.
caf::error bench_arguments::take_schedule() {
  auto& x = result_;
  TRY(written, schedules_for(settings_, "--devices"));
  const auto& own = written->request;
  if (own.world_size < devices_min || own.world_size > devices_max)
    return invalid(fmt::format("--schedule {}: a world size of {}, but the bench takes 2 to {}", settings_.schedule,
                               own.world_size, devices_max));
  if (!own.counts.empty())
    return invalid(fmt::format("--schedule {}: it has counts, but the bench gives every rank the same",
                               settings_.schedule));
  auto own_bytes = size_count(written->kind, own) * size_of(x.datatype);
  x.min_bytes = min_bytes_.value_or(own_bytes);
  x.max_bytes = max_bytes_.value_or(std::max(x.min_bytes, own_bytes));
  if (x.max_bytes > bench_bytes_max)
    return invalid(fmt::format("--schedule {}: {} bytes are more than the bench takes, {}", settings_.schedule,
                               x.max_bytes, bench_bytes_max));
  for (auto [option, bytes] : {std::pair{"--min-bytes", x.min_bytes}, {"--max-bytes", x.max_bytes}})
    if (auto factor = factor_for(option, bytes, settings_, *written); !factor)
      return std::move(factor.error());
  x.kind = written->kind;
  x.devices = own.world_size;
  x.devices_given = true;
  x.root = own.root;
  x.peer = own.peer;
  x.algorithm = algorithm_name_of(settings_.schedule);
  if (x.min_bytes > x.max_bytes)
    return invalid(fmt::format("--min-bytes {} is more than --max-bytes {}", x.min_bytes, x.max_bytes));
  x.written = std::move(*written);
  return check_proof(settings_.schedule, *x.written);
}

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
  if (x.uneven && has_v_variant(x.kind))
    *result.mutable_counts() = uneven_counts(x, count);
  return result;
}

caf::expected<bench_options> bench_arguments::options(uint32_t devices) {
  result_.datatype = settings_.datatype;
  result_.op = op_.value_or(result_.op);
  RETURN_ERROR(settings_.schedule.empty() ? take_collective(devices) : take_schedule());
  const auto kind = result_.kind;
  for (auto [option, given] : {std::pair{"--op", op_.has_value()}, {"--deterministic", result_.deterministic}})
    RETURN_ERROR(given ? check_reduces(option, kind) : caf::error{});
  if (result_.uneven && !has_v_variant(kind))
    return invalid(fmt::format("--uneven: ranks have no blocks of their own in {}", name_of(kind)));
  if (result_.uneven && result_.written)
    return invalid(fmt::format("--uneven: --schedule {} says how large its blocks are", settings_.schedule));
  for (auto [option, given] : {std::pair{"--min-bytes", min_bytes_.has_value()},
                               {"--max-bytes", max_bytes_.has_value()},
                               {"--in-place", result_.in_place}})
    RETURN_ERROR(given ? check_has_data(option, kind) : caf::error{});
  return result_;
}

std::vector<std::string> algorithms_for(const bench_options& x) {
  if (x.algorithm != "all")
    return {x.algorithm};
  // Some algorithms refuse blocks of several sizes.
  const auto request = request_of(collective_of(x, 1), x.devices, 0);
  std::vector<std::string> result;
  for (auto& known : algorithms())
    if (known.kind == x.kind && (!x.uneven || find_algorithm(known.kind, known.name, request)))
      result.emplace_back(known.name);
  return result;
}

std::vector<uint64_t> sizes_of(const bench_options& x) {
  ensure(x.factor >= 2, "sizes grow");
  std::vector<uint64_t> result;
  for (auto bytes = x.min_bytes; bytes <= x.max_bytes; bytes *= x.factor) {
    result.push_back(bytes);
    if (x.kind == proto::BARRIER || bytes == 0)
      break;
  }
  return result;
}

namespace {

/// Bytes of scratch that a file's schedules need at the largest size, at the rank that needs most.
uint64_t written_scratch(const bench_options& x) {
  if (!x.written)
    return 0;
  uint64_t elements = 0;
  for (const auto& rank : x.written->ranks)
    elements = std::max(elements, rank.scratch_count);
  auto own = size_count(x.kind, x.written->request) * size_of(x.datatype);
  return elements * size_of(x.datatype) * (own == 0 ? 1 : x.max_bytes / own);
}

/// Bytes of scratch that the algorithms need at the largest size, and of the shadow of an in-place output.
uint64_t planned_scratch(const bench_options& x) {
  if (x.written)
    return 0;
  const auto element = size_of(x.datatype);
  auto request = request_of(collective_of(x, count_for_size(x.kind, x.devices, x.max_bytes / element)), x.devices, 0);
  const auto* shared = first_shared_memory(x.kind); // "auto" in this process
  uint64_t scratch = 0, output = 0;
  for (uint32_t rank = 0; rank<x.devices; rank += x.devices> 64 ? 61 : 1) { // a sample of many ranks
    request.rank = rank;
    output = std::max(output, output_count(x.kind, request, rank));
    for (auto& algorithm : algorithms_for(x))
      if (auto planned = plan(x.kind, algorithm == "auto" && shared ? shared->name : algorithm, request))
        scratch = std::max(scratch, planned->scratch_count);
  }
  return (scratch + output) * element;
}

} // namespace

uint64_t memory_for(const bench_options& x) {
  auto whole = x.max_bytes; // the larger side, without blocks that are counted for each rank
  if (x.kind == proto::ALL_GATHER || x.kind == proto::GATHER || x.kind == proto::SCATTER || x.kind == proto::ALL_TO_ALL
      || x.kind == proto::REDUCE_SCATTER)
    whole += 64u * x.devices;
  const bool collects_inputs = x.deterministic || (reduces(x.kind) && needs_all_inputs(x.datatype, x.op));
  auto buffers = (collects_inputs ? x.devices + 2u : 2u) + (x.uneven ? 1u : 0u); // a scratch area for all contributions
  return std::max(buffers * whole + written_scratch(x), planned_scratch(x)) + 65536;
}

} // namespace ringmaster
