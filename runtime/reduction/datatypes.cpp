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

/// Of a datatype that has no numbers.
bool store_nothing(double, std::byte*) {
  return false;
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
  const auto& loops = added.registered;
  if (loops.sum == nullptr && (loops.divide != nullptr || loops.scale != nullptr))
    return refused("averages and sums with factors also need a loop of sums");
  if (loops.mean != nullptr && loops.divide == nullptr)
    return refused("averages of all inputs also need a loop of divisions");
  if (loops.scale != nullptr && added.store == nullptr)
    return refused("sums with factors also need a function that stores a number");
  for (const auto& x : datatypes())
    if (x.name == added.name || x.value == added.value)
      return refused(fmt::format("there is {}, of number {}", x.name, static_cast<int>(x.value)));
  known().push_back(added);
  if (added.store == nullptr)
    known().back().store = store_nothing;
  return caf::none;
}

} // namespace ringmaster
