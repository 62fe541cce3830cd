#include "gateway/course/course_gateway.hpp"

namespace ringmaster::gateway {

caf::expected<std::unique_ptr<course_gateway>> course_gateway::start(caf::actor_system&, coordinator_actor,
                                                                     const std::string&) {
  return std::unique_ptr<course_gateway>{new course_gateway};
}

course_gateway::~course_gateway() = default;

std::vector<std::string> course_gateway::summary() const {
  return {};
}

} // namespace ringmaster::gateway
