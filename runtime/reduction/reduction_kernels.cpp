#include "runtime/reduction/reduction_kernels.hpp"

#include "runtime/reduction/datatypes.hpp"

namespace ringmaster {

namespace {

operation_kernels registered_operation(const registered_loops& loops, gpu_sim::ReduceOp op) {
  switch (op) {
    case gpu_sim::SUM: return {.pair = loops.sum};
    case gpu_sim::PROD: return {.pair = loops.prod};
    case gpu_sim::MIN: return {.pair = loops.min};
    case gpu_sim::MAX: return {.pair = loops.max};
    case gpu_sim::AVG: return {.pair = loops.divide != nullptr ? loops.sum : nullptr};
    case gpu_sim::PREMUL_SUM: return {.pair = loops.scale != nullptr ? loops.sum : nullptr};
    default: return {};
  }
}

datatype_kernels registered_kernels(const known_datatype& type) {
  return {.element_bytes = type.element_bytes,
          .wide_bytes = type.element_bytes,
          .divide = type.registered.divide,
          .scale = type.registered.scale,
          .mean = type.registered.mean};
}

} // namespace

operation_kernels operation_kernels_for(proto::DataType type, gpu_sim::ReduceOp op, instruction_set set) {
  const auto* known = find_datatype(type);
  if (known == nullptr)
    return {};
  return known->operation != nullptr ? known->operation(op, set) : registered_operation(known->registered, op);
}

datatype_kernels datatype_kernels_for(proto::DataType type, instruction_set set) {
  const auto* known = find_datatype(type);
  if (known == nullptr)
    return {};
  return known->kernels != nullptr ? known->kernels(set) : registered_kernels(*known);
}

} // namespace ringmaster
