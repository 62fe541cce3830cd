#include "runtime/reduction/reduction_loops.hpp"

namespace ringmaster {

operation_kernels float_operation(proto::DataType type, gpu_sim::ReduceOp op, instruction_set set) {
  return type == proto::FLOAT64 ? compiled_operation<double>(op, set) : compiled_operation<float>(op, set);
}

datatype_kernels float_datatype(proto::DataType type, instruction_set set) {
  return type == proto::FLOAT64 ? compiled_datatype<double>(set) : compiled_datatype<float>(set);
}

} // namespace ringmaster
