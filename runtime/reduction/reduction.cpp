#include "runtime/reduction/reduction.hpp"

#include "messages/errc.hpp"
#include "runtime/reduction/reducer.hpp"

#include <fmt/format.h>

#include <cassert>
#include <string>
#include <utility>

namespace ringmaster {

namespace {

struct known_datatype {
  proto::DataType value;
  std::string_view name;
  size_t element_bytes;
};

constexpr known_datatype datatypes[] = {
  {proto::FLOAT64, "float64", 8},         {proto::FLOAT32, "float32", 4},
  {proto::INT32, "int32", 4},             {proto::INT64, "int64", 8},
  {proto::INT8, "int8", 1},               {proto::UINT8, "uint8", 1},
  {proto::UINT32, "uint32", 4},           {proto::UINT64, "uint64", 8},
  {proto::FLOAT16, "float16", 2},         {proto::BFLOAT16, "bfloat16", 2},
  {proto::FLOAT8_E4M3, "float8_e4m3", 1}, {proto::FLOAT8_E5M2, "float8_e5m2", 1}};

struct known_reduce_op {
  gpu_sim::ReduceOp value;
  std::string_view name;
};

constexpr known_reduce_op reduce_ops[] = {{gpu_sim::SUM, "sum"}, {gpu_sim::PROD, "prod"}, {gpu_sim::MIN, "min"},
                                          {gpu_sim::MAX, "max"}, {gpu_sim::AVG, "avg"},
                                          {gpu_sim::PREMUL_SUM, "premul_sum"}};

template <class Table, class Value>
std::string_view name_in(const Table& table, Value value) {
  for (const auto& known : table)
    if (known.value == value)
      return known.name;
  return "unknown";
}

template <class Value, class Table>
caf::expected<Value> parse_in(const Table& table, std::string_view noun, std::string_view text) {
  std::string allowed;
  for (const auto& known : table) {
    if (known.name == text)
      return known.value;
    allowed += fmt::format("{}{}", allowed.empty() ? "" : ", ", known.name);
  }
  return make_error(errc::invalid_argument, fmt::format("\"{}\" is no {}; there are {}", text, noun, allowed));
}

} // namespace

size_t size_of(proto::DataType type) {
  for (const auto& known : datatypes)
    if (known.value == type)
      return known.element_bytes;
  return 0;
}

std::string_view name_of(proto::DataType type) {
  return name_in(datatypes, type);
}

std::string_view name_of(gpu_sim::ReduceOp op) {
  return op == gpu_sim::USER ? "user" : name_in(reduce_ops, op);
}

caf::expected<proto::DataType> parse_datatype(std::string_view text) {
  return parse_in<proto::DataType>(datatypes, "datatype", text);
}

caf::expected<gpu_sim::ReduceOp> parse_reduce_op(std::string_view text) {
  return parse_in<gpu_sim::ReduceOp>(reduce_ops, "reduction", text);
}

void reduce(proto::DataType type, gpu_sim::ReduceOp op, const std::byte* a, const std::byte* b, std::byte* out,
            uint64_t count) {
  const auto combine = reducer::of(type, op);
  assert(combine.engaged());
  (*combine)(a, b, out, count);
}

void finish_reduction(proto::DataType type, gpu_sim::ReduceOp op, uint32_t world_size, std::byte* values,
                      uint64_t count) {
  if (op != gpu_sim::AVG)
    return;
  const auto combine = reducer::of(type, op);
  assert(combine.engaged());
  combine->finish(world_size, values, count);
}

} // namespace ringmaster
