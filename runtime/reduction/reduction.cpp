#include "runtime/reduction/reduction.hpp"

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/reduction/datatypes.hpp"
#include "runtime/reduction/reducer.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace ringmaster {

namespace {

struct known_reduce_op {
  gpu_sim::ReduceOp value;
  std::string_view name;
  bool rounds = false; ///< The result is another number than the operands, which a float may have to round.
};

constexpr known_reduce_op reduce_ops[] = {{gpu_sim::SUM, "sum", true}, {gpu_sim::PROD, "prod", true},
                                          {gpu_sim::MIN, "min"},       {gpu_sim::MAX, "max"},
                                          {gpu_sim::AVG, "avg", true}, {gpu_sim::PREMUL_SUM, "premul_sum", true}};

const known_reduce_op* find_op(gpu_sim::ReduceOp op) {
  for (const auto& known : reduce_ops)
    if (known.value == op)
      return &known;
  return nullptr;
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
  const auto* known = find_datatype(type);
  return known == nullptr ? 0 : known->element_bytes;
}

std::string_view name_of(proto::DataType type) {
  const auto* known = find_datatype(type);
  return known == nullptr ? "unknown" : known->name;
}

std::string_view name_of(gpu_sim::ReduceOp op) {
  const auto* known = find_op(op);
  return op == gpu_sim::USER ? "user" : known == nullptr ? "unknown" : known->name;
}

bool order_shows(proto::DataType type, gpu_sim::ReduceOp op) {
  const auto* known = find_op(op);
  const auto* elements = find_datatype(type);
  return op == gpu_sim::USER || (known != nullptr && known->rounds && elements != nullptr && elements->is_float);
}

bool needs_all_inputs(proto::DataType type, gpu_sim::ReduceOp op) {
  const auto* known = find_datatype(type);
  if (known == nullptr || (op != gpu_sim::AVG && (op != gpu_sim::PREMUL_SUM || !known->is_float)))
    return false;
  return datatype_kernels_for(type, best_instruction_set()).unscale == nullptr;
}

caf::expected<proto::DataType> parse_datatype(std::string_view text) {
  return parse_in<proto::DataType>(datatypes(), "datatype", text);
}

caf::expected<gpu_sim::ReduceOp> parse_reduce_op(std::string_view text) {
  return parse_in<gpu_sim::ReduceOp>(reduce_ops, "reduction", text);
}

void reduce(proto::DataType type, gpu_sim::ReduceOp op, const std::byte* a, const std::byte* b, std::byte* out,
            uint64_t count) {
  const auto combine = reducer::of(type, op);
  ensure(combine.engaged(), "a checked reduction has a function");
  (*combine)(a, b, out, count);
}

void finish_reduction(proto::DataType type, gpu_sim::ReduceOp op, uint32_t world_size, std::byte* values,
                      uint64_t count) {
  if (op != gpu_sim::AVG)
    return;
  const auto combine = reducer::of(type, op);
  ensure(combine.engaged(), "a checked reduction has a function");
  combine->finish(world_size, values, count);
}

} // namespace ringmaster
