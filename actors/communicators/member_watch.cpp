#include "actors/communicators/member_watch.hpp"

#include "runtime/invariants/ensure.hpp"

namespace ringmaster {

void member_watch::add(device_id device, const device_handle& handle) {
  if (!handle.relay)
    return liveness_.add(device);
  auto [process, is_new] = processes_.try_emplace(handle.relay->address());
  if (is_new)
    process->second.number = ++last_process_;
  ++process->second.devices;
  liveness_.add(device, process->second.number);
}

void member_watch::remove(device_id device, const device_handle& handle) {
  forget(device);
  liveness_.remove(device);
  const auto process = handle.relay ? processes_.find(handle.relay->address()) : processes_.end();
  if (process == processes_.end())
    return;
  ensure(process->second.devices > 0, "a device that is removed was added");
  if (--process->second.devices == 0)
    processes_.erase(process);
}

uint64_t member_watch::asked(const std::vector<device_id>& devices, time_point now, uint64_t unix_ns) {
  ensure(now >= liveness_.last_progress(), "time does not run backwards");
  const auto number = liveness_.on_request(devices, now);
  ensure(number > 0, "progress requests are numbered from 1");
  clocks_.asked(number, unix_ns);
  return number;
}

void member_watch::on_progress(const proto::Progress& x, time_point now) {
  liveness_.on_answer(x, now);
  if (x.has_work())
    slow_.heard(device_id{x.device_id()}, x.work(), now);
  traffic_.heard(device_id{x.device_id()}, epoch_number{x.epoch()}, sequence_number{x.sequence()}, x.received(), now);
}

std::optional<proto::NodeClock> member_watch::on_node_report(
  const caf::actor_addr& relay, const proto::ProgressReport& x, bool is_local, time_point now, uint64_t unix_ns) {
  if (const auto process = processes_.find(relay); process != processes_.end())
    liveness_.on_report(process->second.number, now);
  std::optional<proto::NodeClock> clock;
  if (x.node_id() != 0 && !is_local)
    clock = clocks_.answered(node_id{x.node_id()}, x.number(), x.time_ns(), unix_ns);
  for (auto& device : x.devices())
    on_progress(device, now);
  return clock;
}

void member_watch::on_report(const proto::RankReport& x, time_point now) {
  note_progress(now);
  traffic_.heard(device_id{x.device_id()}, epoch_number{x.epoch()}, sequence_number{x.sequence()}, x.received(), now);
}

void member_watch::note_progress(time_point now) {
  ensure(now >= liveness_.last_progress(), "time does not run backwards");
  liveness_.note_progress(now);
}

} // namespace ringmaster
