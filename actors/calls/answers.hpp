#pragma once

#include "messages/errc.hpp"
#include "messages/gpu_sim.pb.h"

#include <string>

namespace ringmaster {

// An error in an answer is a sentence, and beside it its code: these write both, and `error_in` reads them.

/// Writes the error into any message that carries one. None clears it.
template <class Message>
void set_error_in(Message& x, const caf::error& problem) {
  x.set_error(problem ? render(problem) : std::string{});
  x.set_code(wire_code(problem));
}

/// The error that an answer carries, none where it has worked.
template <class Message>
caf::error error_in(const Message& x) {
  return x.error().empty() ? caf::error{} : error_from_wire(x.code(), x.error());
}

/// The answer of a request that cannot be met. One that carries a status says FAILED.
template <class Response>
Response refusal(const caf::error& problem) {
  Response result;
  if constexpr (requires { result.set_status(gpu_sim::FAILED); })
    result.set_status(gpu_sim::FAILED);
  set_error_in(result, problem);
  return result;
}

template <class Response>
Response refusal(errc code, std::string text) {
  return refusal<Response>(make_error(code, std::move(text)));
}

/// The answer of a request that has worked if there is no `problem`.
template <class Response>
Response verdict(const caf::error& problem) {
  Response result;
  result.set_success(!problem);
  set_error_in(result, problem);
  return result;
}

} // namespace ringmaster
