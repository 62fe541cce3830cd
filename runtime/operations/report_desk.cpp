#include "runtime/operations/report_desk.hpp"

#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <iterator>

namespace ringmaster {

void report_desk::expect(communicator_id communicator, epoch_number epoch, const std::vector<device_id>& devices) {
  auto& known = known_[communicator];
  if (known.epoch == epoch)
    return;
  ensure(!devices.empty(), "a process of a communicator has ranks");
  known = {};
  known.epoch = epoch;
  known.devices = {devices.begin(), devices.end()};
  ensure(known.devices.size() == devices.size(), "a device has one rank");
}

std::optional<shared_memory_arrivals> report_desk::on_arrival(const shared_memory_arrival& x) {
  auto i = known_.find(x.communicator);
  if (i == known_.end() || i->second.epoch != x.epoch)
    return std::nullopt; // of an older epoch
  auto& known = i->second;
  known.arrived[x.device] = x;
  ensure(known.arrived.size() <= known.devices.size(), "only ranks of this process arrive");
  if (known.arrived.size() < known.devices.size())
    return std::nullopt;
  auto last = std::min_element(known.arrived.begin(), known.arrived.end(), [](auto& a, auto& b) {
                return a.second.sequence < b.second.sequence;
              })->second.sequence;
  if (last <= known.announced)
    return std::nullopt;
  known.announced = last;
  shared_memory_arrivals result{x.communicator, x.epoch, last, {}, {}};
  for (auto& [device, arrival] : known.arrived) {
    result.devices.push_back(device);
    result.memories.push_back(arrival.memory);
  }
  return result;
}

std::vector<proto::RankReport> report_desk::on_report(const proto::RankReport& x) {
  auto i = known_.find(communicator_id{x.comm_id()});
  bool waits = x.phase() == proto::RankReport::FINISHED || x.phase() == proto::RankReport::COMMITTED;
  if (i == known_.end() || i->second.epoch != epoch_number{x.epoch()} || i->second.stopped)
    return {x};
  auto& known = i->second;
  if (!waits) {
    auto result = stop(i->first);
    result.push_back(x);
    return result;
  }
  moment which{x.sequence(), x.phase()};
  auto& gathered = known.gathered[which];
  gathered.push_back(x);
  ensure(gathered.size() <= known.devices.size(), "reports go on once all ranks have sent theirs");
  if (gathered.size() < known.devices.size())
    return {};
  return std::move(known.gathered.extract(which).mapped());
}

std::vector<proto::RankReport> report_desk::stop(communicator_id communicator) {
  std::vector<proto::RankReport> result;
  auto i = known_.find(communicator);
  if (i == known_.end())
    return result;
  i->second.stopped = true;
  for (auto& each : std::exchange(i->second.gathered, {}))
    std::move(each.second.begin(), each.second.end(), std::back_inserter(result));
  ensure(i->second.gathered.empty(), "after the stop nothing is gathered");
  return result;
}

} // namespace ringmaster
