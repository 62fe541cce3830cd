#include "runtime/reduction/reduction_loops.hpp"

namespace ringmaster {

namespace {

template <class T>
operation_kernels operation_of(gpu_sim::ReduceOp op, instruction_set set) {
  return compiled_operation<T, std::make_unsigned_t<T>>(op, set);
}

// Values of up to 32 bits and every divisor are exact in a double, and so is the quotient's whole part; doubles have
// vectors. Of 8 bits a float does: a quotient that is not whole is further than its rounding from the next whole
// number, and a divisor too large for a float is larger than every value.
template <class T>
using divided_in = std::conditional_t<sizeof(T) == 8, T, std::conditional_t<sizeof(T) == 4, double, float>>;

template <class T>
datatype_kernels datatype_of(instruction_set set) {
  return compiled_datatype<T, divided_in<T>>(set);
}

} // namespace

operation_kernels integer_operation(proto::DataType type, gpu_sim::ReduceOp op, instruction_set set) {
  switch (type) {
    case proto::INT8: return operation_of<int8_t>(op, set);
    case proto::UINT8: return operation_of<uint8_t>(op, set);
    case proto::INT32: return operation_of<int32_t>(op, set);
    case proto::UINT32: return operation_of<uint32_t>(op, set);
    case proto::INT64: return operation_of<int64_t>(op, set);
    case proto::UINT64: return operation_of<uint64_t>(op, set);
    default: return {};
  }
}

datatype_kernels integer_datatype(proto::DataType type, instruction_set set) {
  switch (type) {
    case proto::INT8: return datatype_of<int8_t>(set);
    case proto::UINT8: return datatype_of<uint8_t>(set);
    case proto::INT32: return datatype_of<int32_t>(set);
    case proto::UINT32: return datatype_of<uint32_t>(set);
    case proto::INT64: return datatype_of<int64_t>(set);
    case proto::UINT64: return datatype_of<uint64_t>(set);
    default: return {};
  }
}

} // namespace ringmaster
