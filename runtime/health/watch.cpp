#include "runtime/health/watch.hpp"

#include <fmt/format.h>

namespace ringmaster {

watch::verdict watch::look(const std::vector<device_id>& devices, time_point now) {
  verdict result;
  for (auto device : devices)
    if (auto x = devices_.find(device); x != devices_.end())
      if (auto found = x->second.suspect.evaluate(now); found.suspected)
        result.suspects.emplace_back(device, found.reason);
  auto most = overload_.look(result.suspects.size(), devices.size(), now);
  if (most.began)
    result.overload = fmt::format(
      "{} of {} devices answer late, as if the hosts or the network were overloaded: none is "
      "given up for {:.1f} s",
      result.suspects.size(), devices.size(), std::chrono::duration<double>{overload_.patience()}.count());
  if (most.excused)
    result.suspects.clear();
  return result;
}

uint64_t watch::on_request(const std::vector<device_id>& devices, time_point now) {
  ++requests_;
  for (auto device : devices)
    if (auto x = devices_.find(device); x != devices_.end())
      x->second.suspect.on_request(requests_, now);
  return requests_;
}

void watch::on_answer(const proto::Progress& x, time_point now) {
  auto i = devices_.find(device_id{x.device_id()});
  if (i == devices_.end())
    return;
  auto& [suspect, latest] = i->second;
  suspect.on_answer(x.number(), std::chrono::nanoseconds{x.busy() ? x.busy_for_ns() : 0}, now);
  if (x.sequence() != latest.sequence() || x.epoch() != latest.epoch() || x.round() != latest.round()
      || x.doing() != latest.doing()) // it tells the pieces of a block, too
    last_progress_ = now;
  latest = x;
}

const std::string& watch::doing(device_id device) const {
  static const std::string nothing;
  auto i = devices_.find(device);
  return i == devices_.end() ? nothing : i->second.latest.doing();
}

} // namespace ringmaster
