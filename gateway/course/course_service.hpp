#pragma once

#include "gateway/access/caller_guard.hpp"
#include "gateway/course/course_call.hpp"
#include "gateway/dialects/dialect.hpp"

#include <grpcpp/generic/async_generic_service.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>

namespace ringmaster::gateway {

using call_server = std::function<void(call_pointer)>;

/// Receives all calls of one gRPC server as bytes, and hands those of the course protocol to `serve`. It also answers
/// reflection. Unknown methods are UNIMPLEMENTED.
class course_service final : public grpc::CallbackGenericService {
public:
  /// `place`: the device that the server is the address of; none: it has the coordinator's services, too. `registry`
  /// counts and ends the calls. `serve` may be called by several threads at once.
  course_service(std::shared_ptr<call_registry> registry, std::optional<size_t> place, call_server serve)
    : registry_(std::move(registry)), place_(place), serve_(std::move(serve)) {}

  /// Who may call at this address. Before this, all calls are refused.
  void admit(const caller_rules& rules, const endpoint& own) { guard_ = std::make_shared<caller_guard>(rules, own); }

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override;

private:
  caf::expected<call_origin> origin_of(const grpc::GenericCallbackServerContext& context) const;
  bool serves(std::string_view method) const;
  caf::error check_caller(const grpc::GenericCallbackServerContext& context) const;

  const std::shared_ptr<call_registry> registry_;
  const std::optional<size_t> place_;
  const call_server serve_;
  std::atomic<std::shared_ptr<caller_guard>> guard_;
};

} // namespace ringmaster::gateway
