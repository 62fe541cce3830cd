#include "gateway/course/status_codes.hpp"

#include "messages/errc.hpp"
#include "runtime/text/utf8.hpp"

namespace ringmaster::gateway {

namespace {

grpc::StatusCode code_for(errc code) {
  switch (code) {
    case errc::unknown_device:
    case errc::unknown_communicator:
    case errc::unknown_stream: return grpc::NOT_FOUND;
    case errc::out_of_range: return grpc::OUT_OF_RANGE;
    case errc::too_few_devices:
    case errc::too_many:
    case errc::out_of_memory:
    case errc::no_space: return grpc::RESOURCE_EXHAUSTED;
    case errc::group_misuse:
    case errc::in_use:
    case errc::refused: return grpc::FAILED_PRECONDITION;
    case errc::invalid_argument:
    case errc::invalid_config:
    case errc::size_mismatch:
    case errc::too_large: return grpc::INVALID_ARGUMENT;
    case errc::permission_denied: return grpc::PERMISSION_DENIED;
    case errc::timed_out: return grpc::DEADLINE_EXCEEDED;
    case errc::device_lost:
    case errc::killed_on_request:
    case errc::suspected:
    case errc::unreachable: return grpc::UNAVAILABLE;
    case errc::aborted: return grpc::ABORTED;
    case errc::ok:
    case errc::io_error:
    case errc::corrupt:
    case errc::wrong_version:
    case errc::gave_up:
    case errc::not_ringmaster: return grpc::INTERNAL;
    case errc::unauthenticated: return grpc::UNAUTHENTICATED;
  }
  return grpc::INTERNAL;
}

} // namespace

grpc::Status status_of(const caf::error& problem) {
  if (!problem)
    return grpc::Status::OK;
  constexpr size_t text_max = 1024; // it travels in a header, and clients limit those
  auto text = render(problem);
  if (text.size() > text_max)
    text = as_utf8(text.substr(0, text_max));
  return {code_for(static_cast<errc>(wire_code(problem))), text};
}

} // namespace ringmaster::gateway
