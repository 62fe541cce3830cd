#include "runtime/reduction.hpp"

#include "messages/errc.hpp"
#include "runtime/reduction_kernels.hpp"

#include <fmt/format.h>

#include <cassert>
#include <utility>

namespace ringmaster {

namespace {

constexpr std::pair<proto::DataType, std::string_view> datatypes[] = {
  {proto::FLOAT64, "float64"}, {proto::FLOAT32, "float32"}, {proto::INT32, "int32"}, {proto::INT64, "int64"}};

constexpr std::pair<gpu_sim::ReduceOp, std::string_view> reduce_ops[] = {
  {gpu_sim::SUM, "sum"}, {gpu_sim::PROD, "prod"}, {gpu_sim::MIN, "min"}, {gpu_sim::MAX, "max"}, {gpu_sim::AVG, "avg"}};

template <class Table, class Value>
std::string_view name_in(const Table& table, Value value) {
  for (const auto& [known, name] : table)
    if (known == value)
      return name;
  return "unknown";
}

template <class Value, class Table>
caf::expected<Value> parse_in(const Table& table, std::string_view noun, std::string_view text) {
  std::string allowed;
  for (const auto& [value, name] : table) {
    if (name == text)
      return value;
    allowed += fmt::format("{}{}", allowed.empty() ? "" : ", ", name);
  }
  return make_error(errc::invalid_argument, fmt::format("\"{}\" is no {}; there are {}", text, noun, allowed));
}

/// The kernels are built without the thread sanitizer, which would look at each element: it is told of whole ranges.
void announce_access([[maybe_unused]] const std::byte* a, [[maybe_unused]] const std::byte* b,
                     [[maybe_unused]] std::byte* out, [[maybe_unused]] size_t bytes) {
#ifdef RINGMASTER_THREAD_SANITIZER // functions that the compiler declares
  __tsan_read_range(const_cast<std::byte*>(a), bytes);
  if (b != nullptr)
    __tsan_read_range(const_cast<std::byte*>(b), bytes);
  __tsan_write_range(out, bytes);
#endif
}

} // namespace

size_t size_of(proto::DataType type) {
  switch (type) {
    case proto::FLOAT64:
    case proto::INT64: return 8;
    case proto::FLOAT32:
    case proto::INT32: return 4;
    default: return 0;
  }
}

std::string_view name_of(proto::DataType type) {
  return name_in(datatypes, type);
}

std::string_view name_of(gpu_sim::ReduceOp op) {
  return name_in(reduce_ops, op);
}

caf::expected<proto::DataType> parse_datatype(std::string_view text) {
  return parse_in<proto::DataType>(datatypes, "datatype", text);
}

caf::expected<gpu_sim::ReduceOp> parse_reduce_op(std::string_view text) {
  return parse_in<gpu_sim::ReduceOp>(reduce_ops, "reduction", text);
}

void reduce(proto::DataType type, gpu_sim::ReduceOp op, const std::byte* a, const std::byte* b, std::byte* out,
            uint64_t count) {
  const auto kernel = kernel_for(type, op, best_instruction_set());
  assert(kernel != nullptr);
  announce_access(a, b, out, count * size_of(type));
  kernel(a, b, out, count);
}

void finish_reduction(proto::DataType type, gpu_sim::ReduceOp op, uint32_t world_size, std::byte* values,
                      uint64_t count) {
  if (op != gpu_sim::AVG)
    return;
  const auto divide = division_for(type, best_instruction_set());
  assert(divide != nullptr && world_size > 0);
  divide(values, count, world_size);
}

} // namespace ringmaster
