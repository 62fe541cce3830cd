#pragma once

#include "messages/errc.hpp"
#include "messages/gpu_sim.pb.h"

#include <string>

namespace ringmaster {

// An answer carries an error as a code and a sentence. These write both, and `error_in` reads them.

/// Writes the error into a message; no error clears it.
template <class Message>
void set_error_in(Message& x, const caf::error& problem) {
  x.set_error(problem ? render(problem) : std::string{});
  x.set_code(wire_code(problem));
}

/// The error of an answer; none if the request has succeeded.
template <class Message>
caf::error error_in(const Message& x) {
  return x.error().empty() ? caf::error{} : error_from_wire(x.code(), x.error());
}

/// The answer to a request that fails. A status in it is FAILED.
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

/// The answer to a request, which has succeeded if there is no `problem`.
template <class Response>
Response verdict(const caf::error& problem) {
  Response result;
  result.set_success(!problem);
  set_error_in(result, problem);
  return result;
}

} // namespace ringmaster
