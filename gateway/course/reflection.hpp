#pragma once

#include <grpcpp/generic/async_generic_service.h>

namespace ringmaster::gateway {

/// The method of gRPC server reflection, by which tools such as grpcurl read the services of a server.
constexpr auto reflection_method = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";

/// Serves one call of it, and deletes itself.
grpc::ServerGenericBidiReactor* new_reflection();

} // namespace ringmaster::gateway
