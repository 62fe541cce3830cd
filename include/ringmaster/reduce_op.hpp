#pragma once

#include <ringmaster/datatype.hpp>

#include <functional>
#include <vector>

namespace RINGMASTER_API {

/// A reduction of your own.
struct reduce_op_definition {
  /// out[i] = a[i] op b[i] for `count` elements, which need not be aligned; `out` may be `a` or `b`. Called by several
  /// threads at once; must not throw. Associative and commutative, or the communicator is deterministic.
  std::function<void(datatype type, const std::byte* a, const std::byte* b, std::byte* out, uint64_t count)> apply{};
  std::vector<datatype> datatypes{}; ///< That it accepts.
};

/// Registers a reduction: `reduction::user(name)` then names it. Every process with devices must register it, alike,
/// before a collective names it: ranks do not send code. Errors: invalid_argument for a name that is empty or taken, a
/// missing function or datatype. Thread-safe.
expected<void> register_reduce_op(const std::string& name, reduce_op_definition added);

/// The same for elements of a C++ type that has a datatype (datatype.hpp): `combine` is called for each pair of
/// elements.
template <class T, class Combine>
expected<void> register_reduce_op(const std::string& name, Combine combine) {
  auto apply = [combine](datatype, const std::byte* a, const std::byte* b, std::byte* out, uint64_t count) {
    detail::combine_elements<T>(a, b, out, count, combine);
  };
  return register_reduce_op(name, reduce_op_definition{apply, {datatype_of<T>()}});
}

} // namespace RINGMASTER_API
