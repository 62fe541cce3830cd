#include "runtime/reduction/datatypes.hpp"

#include "messages/errc.hpp"

#include <fmt/format.h>

#include <bit>
#include <vector>

namespace ringmaster {

namespace {

std::vector<known_datatype>& known() {
  static std::vector<known_datatype> all{RINGMASTER_DATATYPES(RINGMASTER_DATATYPE_ENTRY)};
  return all;
}

} // namespace

std::span<const known_datatype> datatypes() {
  return known();
}

const known_datatype* find_datatype(proto::DataType type) {
  const auto& all = known();
  const auto index = static_cast<size_t>(type); // ours lie in the order of their numbers
  if (index < all.size() && all[index].value == type)
    return &all[index];
  for (const auto& x : all)
    if (x.value == type)
      return &x;
  return nullptr;
}

caf::error register_datatype(const known_datatype& added) {
  const auto refused = [&](std::string_view why) {
    return make_error(errc::invalid_argument,
                      fmt::format("the datatype \"{}\" cannot be registered: {}", added.name, why));
  };
  if (added.name.empty())
    return refused("it has no name");
  if (static_cast<int>(added.value) < 0 || static_cast<int>(added.value) > datatype_number_max)
    return refused(fmt::format("its number is {}, not 0 to {}", static_cast<int>(added.value), datatype_number_max));
  if (added.element_bytes > element_bytes_max || !std::has_single_bit(added.element_bytes)) // as blocks are cut
    return refused(fmt::format("an element has 1, 2, 4 or {} bytes, not {}", element_bytes_max, added.element_bytes));
  if (added.store == nullptr || added.operation == nullptr || added.kernels == nullptr)
    return refused("it needs functions that store a number, and that find its loops");
  for (const auto& x : datatypes())
    if (x.name == added.name || x.value == added.value)
      return refused(fmt::format("there is {}, of number {}", x.name, static_cast<int>(x.value)));
  known().push_back(added);
  return caf::none;
}

} // namespace ringmaster
