#pragma once

#include <caf/error.hpp>
#include <grpcpp/support/status.h>

namespace ringmaster::gateway {

/// The name of the trailing metadata with the name of our error code: "unknown_device".
constexpr auto code_metadata = "ringmaster-code";

/// The status that a client gets for an error; its message is the error's, at most 1 KiB of it.
grpc::Status status_of(const caf::error& problem);

} // namespace ringmaster::gateway
