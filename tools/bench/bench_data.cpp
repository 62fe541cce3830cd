#include "tools/bench/bench_data.hpp"

#include "runtime/reduction/datatypes.hpp"
#include "runtime/reduction/reduction.hpp"

#include <algorithm>
#include <cstring>

namespace ringmaster {

namespace {

constexpr uint64_t period = 4;

bool is_small_float(const known_datatype& x) {
  return x.is_float && x.element_bytes < sizeof(float);
}

/// As the datatype has it; small floats are computed in float32, and rounded from that.
void store(const known_datatype& type, double x, std::byte* to) {
  type.store(is_small_float(type) ? static_cast<float>(x) : x, to);
}

double value(proto::DataType type, uint32_t rank, uint64_t index) {
  if (is_small_float(*find_datatype(type))) // a sum over many ranks must not need more digits than there are
    return rank == 0 ? static_cast<double>(index % 2) : 0;
  return static_cast<double>((index + 3 * uint64_t{rank}) % period);
}

double reduced(const bench_options& x, uint64_t index) {
  auto result = value(x.datatype, 0, index);
  for (uint32_t rank = 1; rank < x.devices; ++rank) {
    auto next = value(x.datatype, rank, index);
    switch (x.op) {
      case gpu_sim::PROD: result *= next; break;
      case gpu_sim::MIN: result = std::min(result, next); break;
      case gpu_sim::MAX: result = std::max(result, next); break;
      default: result += next; break;
    }
  }
  return x.op == gpu_sim::AVG ? result / x.devices : result;
}

/// What output element `index` of `rank` must be.
double expected(const bench_options& x, uint64_t count, uint32_t rank, uint64_t index) {
  auto of_rank = [&](uint64_t from, uint64_t i) { return value(x.datatype, static_cast<uint32_t>(from), i); };
  switch (x.kind) {
    case proto::ALL_REDUCE:
    case proto::REDUCE: return reduced(x, index);
    case proto::REDUCE_SCATTER: return reduced(x, rank * count + index);
    case proto::ALL_GATHER:
    case proto::GATHER: return of_rank(index / count, index % count);
    case proto::ALL_TO_ALL: return of_rank(index / count, rank * count + index % count);
    case proto::SCATTER: return of_rank(x.root, rank * count + index);
    default: return of_rank(x.root, index);
  }
}

} // namespace

std::vector<std::byte> bench_input(proto::DataType type, uint32_t rank, uint64_t count) {
  auto element = size_of(type);
  std::vector<std::byte> result(count * element);
  for (uint64_t i = 0; i < std::min(count, period); ++i)
    store(*find_datatype(type), value(type, rank, i), result.data() + i * element);
  for (auto done = period * element; done < result.size(); done *= 2) // what is there is repeated
    std::memcpy(result.data() + done, result.data(), std::min(done, result.size() - done));
  return result;
}

uint64_t count_wrong(const bench_options& options, uint64_t count, uint32_t rank, const std::byte* found,
                     uint64_t elements) {
  auto element = size_of(options.datatype);
  uint64_t wrong = 0;
  const auto* known = find_datatype(options.datatype);
  std::byte right[element_bytes_max];
  for (uint64_t i = 0; i < elements; ++i) {
    store(*known, expected(options, count, rank, i), right);
    wrong += std::memcmp(found + i * element, right, element) != 0 ? 1 : 0;
  }
  return wrong;
}

} // namespace ringmaster
