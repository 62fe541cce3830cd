#include "runtime/reduction/reduction.hpp"

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/reduction/announced_access.hpp"
#include "runtime/reduction/datatypes.hpp"
#include "runtime/reduction/reduction_tiles.hpp"

#include <fmt/format.h>

#include <array>

namespace ringmaster {

caf::error check_factor(proto::DataType type, double factor) {
  const auto* known = find_datatype(type);
  if (known == nullptr)
    return make_error(errc::invalid_argument, fmt::format("there is no datatype of number {}", static_cast<int>(type)));
  std::array<std::byte, element_bytes_max> element;
  if (known->store(factor, element.data()))
    return caf::none;
  return make_error(errc::invalid_argument,
                    known->is_float ? fmt::format("the factor is {}, which is not finite in {}", factor, known->name)
                                    : fmt::format("the factor is {}, but of {} it must be whole and from {} to {}",
                                                  factor, known->name, known->least, known->most));
}

void scale(proto::DataType type, double factor, const std::byte* in, std::byte* out, uint64_t count) {
  const auto* known = find_datatype(type);
  ensure(known != nullptr, "a factor has a known datatype");
  std::array<std::byte, element_bytes_max> element;
  [[maybe_unused]] const auto fits = known->store(factor, element.data());
  ensure(fits, "a factor fits its datatype");
  const auto kernels = datatype_kernels_for(type, best_instruction_set());
  announce_read(in, count * kernels.element_bytes);
  announce_write(out, count * kernels.element_bytes);
  scale_values(kernels, element.data(), in, out, count);
}

} // namespace ringmaster
