#include "runtime/health/traffic.hpp"

#include "runtime/invariants/ensure.hpp"

#include <algorithm>

namespace ringmaster {

void traffic::heard(device_id device, epoch_number epoch, sequence_number sequence,
                    const google::protobuf::RepeatedPtrField<proto::RouteBytes>& received, time_point now) {
  if (received.empty())
    return;
  auto& latest = attempts_[device];
  if (std::tie(epoch, sequence) < std::tie(latest.epoch, latest.sequence))
    return; // a later report has overtaken it
  if (latest.epoch != epoch || latest.sequence != sequence)
    latest = {epoch, sequence, {}};
  for (auto& x : received) {
    auto& known = latest.heard[x.route()];
    if (x.bytes() > known)
      moved(x.route(), x.bytes() - known, now);
    known = std::max(known, x.bytes());
  }
}

void traffic::moved(const std::string& route, uint64_t bytes, time_point now) {
  auto& way = ways_[route];
  way.bytes += bytes;
  auto number = number_of(now);
  ensure(way.lately.empty() || way.lately.back().number <= number, "time does not run backwards");
  if (way.lately.empty() || way.lately.back().number != number)
    way.lately.push_back({number, 0});
  way.lately.back().bytes += bytes;
  while (way.lately.front().number <= number - window / step)
    way.lately.pop_front();
  ensure(way.lately.size() <= static_cast<size_t>(window / step), "a rate covers one window");
}

std::vector<traffic::row> traffic::rows(time_point now) const {
  std::vector<row> result;
  auto oldest = number_of(now) - window / step; // the present step is not over: one more makes a whole window at least
  for (auto& [name, way] : ways_) {
    uint64_t bytes = 0;
    for (auto& x : way.lately)
      if (x.number > oldest)
        bytes += x.bytes;
    result.push_back({name, way.bytes, bytes * 1000 / static_cast<uint64_t>(window.count())});
  }
  return result;
}

} // namespace ringmaster
