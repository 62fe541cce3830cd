#include "tools/bench/bench.hpp"

#include "actors/calls/answers.hpp"
#include "actors/communicators/communicator.hpp"
#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/schedule/bus_bandwidth.hpp"
#include "runtime/schedule/request_of.hpp"
#include "runtime/text/quantity_text.hpp"
#include "tools/bench/bench_options.hpp"
#include "tools/clients/free_devices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace ringmaster {

namespace {

using steady = std::chrono::steady_clock;

constexpr uint64_t alignment_bytes = 4096;

double us_since(steady::time_point start) {
  return std::chrono::duration<double, std::micro>{steady::now() - start}.count();
}

/// The number of operations that makes a sample take a few milliseconds.
uint32_t operations_for(uint64_t bytes, uint32_t devices) {
  auto moved = std::max<uint64_t>(bytes * devices, 1);
  return static_cast<uint32_t>(std::clamp<uint64_t>((uint64_t{64} << 20) / moved, 2, 256));
}

double percentile(const std::vector<double>& sorted, double part) {
  ensure(!sorted.empty(), "a percentile is of at least one sample");
  auto index = static_cast<size_t>(std::ceil(part * static_cast<double>(sorted.size()))) - 1;
  return sorted[std::min(index, sorted.size() - 1)];
}

} // namespace

caf::error bench::open(const std::vector<device_id>& on) {
  ensure(addresses_.empty(), "a bench is opened once");
  ensure(on.empty() || on.size() == options_.devices, "each rank has a device");
  auto deterministic = options_.deterministic ? std::optional{true} : std::nullopt; // else as configured
  TRY(made, on.empty() ? user_.comm_init(options_.devices, deterministic) : user_.comm_init(on));
  comm_ = std::move(*made);
  ensure(static_cast<uint32_t>(comm_.devices_size()) == options_.devices,
         "a communicator has the devices that were asked for");
  const auto bytes = std::max<uint64_t>(buffer_bytes(), 1); // a barrier has none
  for (uint32_t rank = 0; rank < options_.devices; ++rank) {
    auto taken = user_.allocate(device(rank), bytes, alignment_bytes);
    if (!taken) {
      close();
      return std::move(taken.error());
    }
    addresses_.push_back(*taken);
  }
  return caf::none;
}

caf::error bench::close() {
  auto problem = user_.destroy(id_of(comm_));
  for (uint32_t rank = 0; rank < addresses_.size(); ++rank)
    if (auto kept = user_.free(device(rank), address(rank)); kept && !problem)
      problem = std::move(kept);
  addresses_.clear();
  return problem;
}

plan_request bench::world(uint64_t count) const {
  return request_of(collective_of(options_, count), options_.devices, 0);
}

/// After the largest input of all ranks, at the same offset on each.
uint64_t bench::output_offset(uint64_t count) const {
  uint64_t largest = 0;
  for (uint32_t rank = 0; rank < options_.devices; ++rank)
    largest = std::max(largest, input_count(options_.kind, world(count), rank));
  return (largest * size_of(options_.datatype) + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
}

/// The memory of each rank: its input and its output at the largest size.
uint64_t bench::buffer_bytes() const {
  auto element = size_of(options_.datatype);
  auto count = count_for_size(options_.kind, options_.devices, options_.max_bytes / element);
  auto offset = options_.in_place ? 0 : output_offset(count);
  uint64_t result = 0;
  for (uint32_t rank = 0; rank < options_.devices; ++rank) {
    auto start = options_.in_place ? in_place(options_.kind, world(count), rank) : placement{};
    auto input = (start.input + input_count(options_.kind, world(count), rank)) * element;
    auto output = (start.output + output_count(options_.kind, world(count), rank)) * element;
    result = std::max({result, input, output + offset});
  }
  return result;
}

proto::CollectiveRequest bench::request_for(const std::string& algorithm, uint64_t count) const {
  proto::CollectiveRequest x;
  x.set_comm_id(comm_.commid());
  *x.mutable_collective() = collective_of(options_, count);
  x.mutable_collective()->set_algorithm(algorithm);
  x.set_walks_alone(algorithm != "auto"); // a named algorithm is measured as it is
  for (uint32_t rank = 0; rank < options_.devices; ++rank) {
    x.add_inputs(address(rank));
    if (!options_.in_place)
      x.add_outputs(address(rank) + output_offset(count));
  }
  return x;
}

caf::error bench::fill(uint64_t count, const sample_collective& data) {
  auto element = size_of(options_.datatype);
  for (uint32_t rank = 0; rank < options_.devices; ++rank) {
    auto at = address(rank) + (options_.in_place ? in_place(options_.kind, world(count), rank).input * element : 0);
    auto input = data.input(rank);
    if (!input.empty())
      RETURN_ERROR(user_.copy_to_device(device(rank), at, byte_block::of(std::move(input))));
  }
  return caf::none;
}

/// Compares every element of every rank's output, piece by piece.
caf::expected<uint64_t> bench::check(uint64_t count, sample_collective& data) {
  constexpr uint64_t piece_bytes = 4u << 20;
  const auto element = size_of(options_.datatype);
  const auto piece = piece_bytes / element;
  ensure(piece > 0, "a piece has elements");
  ensure(addresses_.size() == options_.devices, "results are read while the bench is open");
  const auto request = world(count);
  uint64_t largest = 0;
  for (uint32_t rank = 0; rank < options_.devices; ++rank)
    largest = std::max(largest, output_count(options_.kind, request, rank));
  uint64_t wrong = 0;
  for (uint64_t first = 0; first < largest; first += piece)
    for (uint32_t rank = 0; rank < options_.devices; ++rank) {
      const auto outputs = output_count(options_.kind, request, rank);
      if (first >= outputs)
        continue;
      const auto elements = std::min(piece, outputs - first);
      const auto start = options_.in_place ? in_place(options_.kind, request, rank).output * element
                                           : output_offset(count);
      TRY(found, user_.copy_to_host(device(rank), address(rank) + start + first * element, elements * element));
      wrong += data.count_wrong(rank, first, elements, found->bytes().data());
    }
  return wrong;
}

caf::error bench::ended() {
  auto status = user_.wait(id_of(comm_),
                           std::chrono::seconds{120}); // requested after the calls, which are not answered yet
  auto problem = user_.finish_calls();
  if (status && status->epoch() != 1) // however the calls ended
    return make_error(errc::device_lost, status->asyncerror().empty()
                                           ? "operations ran again while they were measured, in a new epoch: two "
                                             "processes had lost their connection, see the log"
                                           : "a device was lost while it was measured: " + status->asyncerror());
  if (problem)
    return problem;
  if (!status)
    return std::move(status.error());
  if (status->status() != gpu_sim::SUCCESS)
    return error_in(*status);
  control_messages_ = status->controlmessages();
  return caf::none;
}

caf::error bench::with_ranks(const caf::error& problem) {
  auto lost = ended();
  return lost ? lost : problem;
}

/// Microseconds an operation.
caf::expected<double> bench::sample(const proto::CollectiveRequest& request, uint32_t operations) {
  constexpr size_t calls_max = 256;
  const auto in_flight_max = communicator_options{}.operations_max;
  ensure(operations > 0, "a sample has operations");
  auto start = steady::now();
  for (uint32_t i = 0; i < operations; ++i) {
    user_.begin_collective(request, calls_max);
    if (options_.single || i + 1 == operations || (i + 1) % in_flight_max == 0)
      RETURN_ERROR(ended());
  }
  return us_since(start) / operations;
}

caf::expected<bench_row> bench::measure(const std::string& algorithm, uint64_t bytes) {
  auto element = size_of(options_.datatype);
  bench_row row;
  row.algorithm = algorithm;
  row.count = count_for_size(options_.kind, options_.devices, bytes / element);
  row.bytes = size_count(options_.kind, world(row.count)) * element;
  auto request = request_for(algorithm, row.count);
  if (row.bytes == 0)
    row.count = 0; // a barrier's
  sample_collective data{options_.kind, world(row.count), options_.datatype, options_.op, ++rows_};
  if (auto problem = fill(row.count, data))
    return with_ranks(problem);
  if (auto once = sample(request, 1); !once)
    return std::move(once.error());
  auto wrong = check(row.count, data);
  if (!wrong)
    return with_ranks(wrong.error());
  row.wrong = *wrong;
  row.operations = options_.iterations != 0 ? options_.iterations : operations_for(row.bytes, options_.devices);
  std::vector<double> times;
  auto messages_before = control_messages_;
  for (uint32_t i = 0; i < options_.warmups + options_.samples; ++i) {
    TRY(time, sample(request, row.operations));
    if (i >= options_.warmups)
      times.push_back(*time);
  }
  if (!options_.in_place) { // in place, inputs are results of results by now
    wrong = check(row.count, data);
    if (!wrong)
      return with_ranks(wrong.error());
    row.wrong = std::max(row.wrong, *wrong);
  }
  row.control_messages = static_cast<double>(control_messages_ - messages_before)
                         / static_cast<double>((options_.warmups + options_.samples) * uint64_t{row.operations});
  ensure(control_messages_ >= messages_before, "messages are only counted up");
  ensure(times.size() == options_.samples, "each sample but the warm-ups counts");
  std::sort(times.begin(), times.end());
  row.time_us = row.p50_us = percentile(times, 0.5);
  row.p99_us = percentile(times, 0.99);
  row.algbw = static_cast<double>(row.bytes) / row.time_us / 1e3;
  row.busbw = row.algbw * bus_bandwidth_factor(options_.kind, options_.devices);
  return row;
}

caf::error fit_sizes(bench_options& x, uint64_t memory_bytes) {
  auto sizes = sizes_of(x);
  ensure(!sizes.empty(), "a bench has at least one size");
  auto fits = [&](uint64_t bytes) {
    auto smaller = x;
    smaller.max_bytes = bytes;
    return memory_for(smaller) <= memory_bytes;
  };
  auto last = std::ranges::find_if(sizes.rbegin(), sizes.rend(), fits);
  if (last == sizes.rbegin())
    return caf::none;
  if (!x.max_bytes_given && last != sizes.rend()) {
    x.max_bytes = *last;
    return caf::none;
  }
  return make_error(
    errc::out_of_memory,
    fmt::format("{} wants {} of memory on each device, and these have {}: {}a larger device.memory-bytes",
                bytes_text(sizes.back()), bytes_text(memory_for(x)), bytes_text(memory_bytes),
                last == sizes.rend() ? "" : fmt::format("--max-bytes {} at most, or ", *last)));
}

caf::expected<bench_options> fit_to_cluster(bench_arguments& arguments, const proto::ClusterInfo& cluster) {
  auto free = free_devices(cluster);
  auto x = arguments.options(static_cast<uint32_t>(std::min<size_t>(free.size(), bench_arguments::devices_max)));
  if (x)
    RETURN_ERROR(fit_sizes(*x, least_memory_bytes(free)));
  return x;
}

} // namespace ringmaster
