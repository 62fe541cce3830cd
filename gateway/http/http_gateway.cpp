#include "gateway/http/http_gateway.hpp"

namespace ringmaster::gateway {

caf::expected<std::unique_ptr<http_gateway>> http_gateway::start(caf::actor_system&, coordinator_actor,
                                                                 const endpoint&) {
  return std::unique_ptr<http_gateway>{new http_gateway};
}

http_gateway::~http_gateway() = default;

std::string http_gateway::summary() const {
  return {};
}

} // namespace ringmaster::gateway
