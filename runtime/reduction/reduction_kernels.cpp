#include "runtime/reduction/reduction_kernels.hpp"

#include "runtime/reduction/reduction_loops.hpp"

namespace ringmaster {

operation_kernels operation_kernels_for(proto::DataType type, gpu_sim::ReduceOp op, instruction_set set) {
  switch (type) {
    case proto::FLOAT16:
    case proto::BFLOAT16:
    case proto::FLOAT8_E4M3:
    case proto::FLOAT8_E5M2: return float_operation(proto::FLOAT32, op, set);
    case proto::FLOAT64:
    case proto::FLOAT32: return float_operation(type, op, set);
    default: return integer_operation(type, op, set);
  }
}

datatype_kernels datatype_kernels_for(proto::DataType type, instruction_set set) {
  switch (type) {
    case proto::FLOAT16:
    case proto::BFLOAT16:
    case proto::FLOAT8_E4M3:
    case proto::FLOAT8_E5M2: return small_float_datatype(type, set);
    case proto::FLOAT64:
    case proto::FLOAT32: return float_datatype(type, set);
    default: return integer_datatype(type, set);
  }
}

} // namespace ringmaster
