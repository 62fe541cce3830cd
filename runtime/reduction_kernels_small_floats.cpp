#include "runtime/reduction_loops.hpp"
#include "runtime/small_floats.hpp"

namespace ringmaster {

namespace {

template <class Format>
struct decoded {
  [[gnu::always_inline]] static inline float apply(typename Format::bits_type bits) { return Format::decode(bits); }
};

template <class Format>
struct encoded {
  [[gnu::always_inline]] static inline typename Format::bits_type apply(float value) { return Format::encode(value); }
};

template <class Format>
datatype_kernels datatype_of(instruction_set set) {
  auto result = float_datatype(proto::FLOAT32, set);
  result.element_bytes = sizeof(typename Format::bits_type);
  result.decode = compiled<conversion_loop<typename Format::bits_type, decoded<Format>>>::at(set);
  result.encode = compiled<conversion_loop<float, encoded<Format>>>::at(set);
  return result;
}

} // namespace

datatype_kernels small_float_datatype(proto::DataType type, instruction_set set) {
  switch (type) {
    case proto::FLOAT16: return datatype_of<float16>(set);
    case proto::BFLOAT16: return datatype_of<bfloat16>(set);
    case proto::FLOAT8_E4M3: return datatype_of<float8_e4m3>(set);
    case proto::FLOAT8_E5M2: return datatype_of<float8_e5m2>(set);
    default: return {};
  }
}

} // namespace ringmaster
