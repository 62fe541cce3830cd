#include "runtime/health/restart_intensity.hpp"

#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace ringmaster {

bool restart_intensity::allow(time_point now) {
  ensure(restarts_.empty() || now >= restarts_.back(), "time does not run backwards");
  while (!restarts_.empty() && now - restarts_.front() > options_.period)
    restarts_.pop_front();
  restarts_.push_back(now);
  if (restarts_.size() > size_t{options_.restarts_max} + 1)
    restarts_.pop_front();
  ensure(now - restarts_.front() <= options_.period, "only restarts within the period count");
  return restarts_.size() <= options_.restarts_max;
}

std::string restart_intensity::reason() const {
  return fmt::format("{} restart{} within {:.1f} s, {} {} allowed", restarts_.size(), restarts_.size() == 1 ? "" : "s",
                     std::chrono::duration<double>(options_.period).count(), options_.restarts_max,
                     options_.restarts_max == 1 ? "is" : "are");
}

restart_intensity::duration restart_delay(uint32_t times, restart_intensity::duration longest) {
  ensure(times > 0, "a child that waits was starved");
  restart_intensity::duration result = std::chrono::milliseconds{500};
  for (; times > 1 && result < longest; --times)
    result *= 2;
  return std::min(result, longest);
}

} // namespace ringmaster
