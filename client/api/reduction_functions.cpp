#include "client/api/handles.hpp"

#include "runtime/reduction/datatypes.hpp"
#include "runtime/reduction/reduce_op_registry.hpp"
#include "runtime/reduction/reduction.hpp"

#include <ringmaster/datatype.hpp>
#include <ringmaster/reduce_op.hpp>

namespace ringmaster::api {

static_assert(static_cast<int>(datatype::float8_e5m2) == proto::FLOAT8_E5M2);
static_assert(static_cast<int>(reduce_op::user) == gpu_sim::USER);

size_t bytes_of(datatype type) {
  return size_of(static_cast<proto::DataType>(type));
}

std::string_view name_of(datatype type) {
  return ringmaster::name_of(static_cast<proto::DataType>(type));
}

std::string_view name_of(reduce_op op) {
  return ringmaster::name_of(static_cast<gpu_sim::ReduceOp>(op));
}

expected<void> register_datatype(const datatype_definition& added) {
  return public_result(ringmaster::register_datatype({.value = static_cast<proto::DataType>(added.number),
                                                      .name = added.name,
                                                      .element_bytes = added.element_bytes,
                                                      .is_float = added.rounds,
                                                      .least = added.least,
                                                      .most = added.most,
                                                      .store = added.store,
                                                      .registered = {.sum = added.sum,
                                                                     .prod = added.prod,
                                                                     .min = added.min,
                                                                     .max = added.max,
                                                                     .divide = added.divide,
                                                                     .mean = added.mean,
                                                                     .scale = added.scale}}));
}

expected<void> register_reduce_op(const std::string& name, reduce_op_definition added) {
  user_reduce_op op;
  if (added.apply)
    op.apply = [apply = std::move(added.apply)](proto::DataType type, const std::byte* a, const std::byte* b,
                                                std::byte* out, uint64_t count) {
      apply(static_cast<datatype>(type), a, b, out, count);
    };
  for (auto each : added.datatypes)
    op.datatypes.push_back(static_cast<proto::DataType>(each));
  return public_result(ringmaster::register_reduce_op(name, std::move(op)));
}

} // namespace ringmaster::api
