#include "runtime/restart_intensity.hpp"

#include <fmt/format.h>

namespace ringmaster {

bool restart_intensity::allow(time_point now) {
  while (!restarts_.empty() && now - restarts_.front() > period_)
    restarts_.pop_front();
  restarts_.push_back(now);
  if (restarts_.size() > size_t{restarts_max_} + 1)
    restarts_.pop_front();
  return restarts_.size() <= restarts_max_;
}

std::string restart_intensity::reason() const {
  return fmt::format("{} restart{} within {:.1f} s, {} {} allowed", restarts_.size(), restarts_.size() == 1 ? "" : "s",
                     std::chrono::duration<double>(period_).count(), restarts_max_, restarts_max_ == 1 ? "is" : "are");
}

} // namespace ringmaster
