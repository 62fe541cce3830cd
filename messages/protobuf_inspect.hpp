#pragma once

#include <caf/error.hpp>
#include <caf/meta/load_callback.hpp>
#include <caf/sec.hpp>
#include <google/protobuf/message.h>

#include <string>
#include <type_traits>

namespace ringmaster {

/// Makes a protobuf message a CAF message: its own encoding on the wire, its own text in logs.
/// Within a process nothing is encoded.
template <class Inspector>
typename Inspector::result_type inspect_protobuf(Inspector& f, google::protobuf::Message& x) {
  if constexpr (!std::is_same_v<typename Inspector::result_type, caf::error>) {
    auto text = x.ShortDebugString();
    return f(text);
  } else if constexpr (Inspector::reads_state) {
    auto bytes = x.SerializeAsString();
    return f(bytes);
  } else {
    std::string bytes;
    return f(bytes, caf::meta::load_callback([&]() -> caf::error {
               return x.ParseFromString(bytes) ? caf::none
                                               : caf::make_error(caf::sec::invalid_argument, x.GetTypeName());
             }));
  }
}

template <class T>
using if_protobuf = std::enable_if_t<std::is_base_of_v<google::protobuf::Message, T>>;

} // namespace ringmaster

namespace gpu_sim {

template <class Inspector, class T, class = ringmaster::if_protobuf<T>>
typename Inspector::result_type inspect(Inspector& f, T& x) {
  return ringmaster::inspect_protobuf(f, x);
}

} // namespace gpu_sim

namespace ringmaster::proto {

template <class Inspector, class T, class = ringmaster::if_protobuf<T>>
typename Inspector::result_type inspect(Inspector& f, T& x) {
  return ringmaster::inspect_protobuf(f, x);
}

} // namespace ringmaster::proto
