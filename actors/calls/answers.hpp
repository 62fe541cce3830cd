#pragma once

#include "messages/gpu_sim.pb.h"

#include <string>

namespace ringmaster {

/// The answer of a request that cannot be met, with the sentence why. One that carries a status says FAILED.
template <class Response>
Response refusal(std::string text) {
  Response result;
  if constexpr (requires { result.set_status(gpu_sim::FAILED); })
    result.set_status(gpu_sim::FAILED);
  result.set_error(std::move(text));
  return result;
}

/// The answer of a request that has worked if `problem` is empty.
template <class Response>
Response verdict(std::string problem) {
  Response result;
  result.set_success(problem.empty());
  result.set_error(std::move(problem));
  return result;
}

} // namespace ringmaster
