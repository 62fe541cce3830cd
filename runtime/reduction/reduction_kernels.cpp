#include "runtime/reduction/reduction_kernels.hpp"

#include "runtime/reduction/datatypes.hpp"

namespace ringmaster {

operation_kernels operation_kernels_for(proto::DataType type, gpu_sim::ReduceOp op, instruction_set set) {
  const auto* known = find_datatype(type);
  return known == nullptr ? operation_kernels{} : known->operation(op, set);
}

datatype_kernels datatype_kernels_for(proto::DataType type, instruction_set set) {
  const auto* known = find_datatype(type);
  return known == nullptr ? datatype_kernels{} : known->kernels(set);
}

} // namespace ringmaster
