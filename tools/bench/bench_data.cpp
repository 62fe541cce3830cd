#include "tools/bench/bench_data.hpp"

#include "runtime/reduction/reduction.hpp"
#include "runtime/reduction/small_floats.hpp"

#include <algorithm>
#include <cstring>

namespace ringmaster {

namespace {

constexpr uint64_t period = 4;

bool is_small_float(proto::DataType type) {
  return type == proto::FLOAT16 || type == proto::BFLOAT16 || type == proto::FLOAT8_E4M3 || type == proto::FLOAT8_E5M2;
}

double value(proto::DataType type, uint32_t rank, uint64_t index) {
  if (is_small_float(type)) // a sum over many ranks must not need more digits than there are
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

/// As the datatype has it.
void store(proto::DataType type, double x, std::byte* to) {
  auto put = [&](auto y) { std::memcpy(to, &y, sizeof(y)); };
  switch (type) {
    case proto::FLOAT64: return put(x);
    case proto::FLOAT32: return put(static_cast<float>(x));
    case proto::INT8: return put(static_cast<int8_t>(x));
    case proto::UINT8: return put(static_cast<uint8_t>(x));
    case proto::INT32: return put(static_cast<int32_t>(x));
    case proto::UINT32: return put(static_cast<uint32_t>(x));
    case proto::INT64: return put(static_cast<int64_t>(x));
    case proto::UINT64: return put(static_cast<uint64_t>(x));
    case proto::FLOAT16: return put(float16::encode(static_cast<float>(x)));
    case proto::BFLOAT16: return put(bfloat16::encode(static_cast<float>(x)));
    case proto::FLOAT8_E4M3: return put(float8_e4m3::encode(static_cast<float>(x)));
    case proto::FLOAT8_E5M2: return put(float8_e5m2::encode(static_cast<float>(x)));
    default: return;
  }
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
    store(type, value(type, rank, i), result.data() + i * element);
  for (auto done = period * element; done < result.size(); done *= 2) // what is there is repeated
    std::memcpy(result.data() + done, result.data(), std::min(done, result.size() - done));
  return result;
}

uint64_t count_wrong(const bench_options& options, uint64_t count, uint32_t rank, const std::byte* found,
                     uint64_t elements) {
  auto element = size_of(options.datatype);
  uint64_t wrong = 0;
  std::byte right[8];
  for (uint64_t i = 0; i < elements; ++i) {
    store(options.datatype, expected(options, count, rank, i), right);
    wrong += std::memcmp(found + i * element, right, element) != 0 ? 1 : 0;
  }
  return wrong;
}

} // namespace ringmaster
