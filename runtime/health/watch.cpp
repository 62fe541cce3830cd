#include "runtime/health/watch.hpp"

#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace ringmaster {

namespace {

double seconds(watch::duration x) {
  return std::chrono::duration<double>{x}.count();
}

} // namespace

watch::verdict watch::look(const std::vector<device_id>& devices, time_point now) {
  notice_own_pause(now);
  next_look_ = now + std::chrono::duration_cast<time_point::duration>(options_.interval);
  verdict result;
  for (auto device : devices)
    if (auto x = devices_.find(device); x != devices_.end())
      if (auto evidence = judge(x->second, now))
        result.suspects.emplace_back(device, std::move(*evidence));
  std::set<device_id> suspected;
  for (auto& x : result.suspects)
    suspected.insert(x.first);
  ensure(suspected.size() <= devices.size(), "only devices that are watched are suspected");
  auto most = overload_.look(suspected, devices.size(), now);
  if (most.began)
    result.overload = fmt::format(
      "{} of {} devices answer late, as if the hosts or the network were overloaded: none is given up for {:.1f} s",
      result.suspects.size(), devices.size(), seconds(overload_.patience()));
  std::erase_if(result.suspects, [&](auto& x) { return most.excused.count(x.first) != 0; });
  return result;
}

void watch::remove(device_id device) {
  const auto gone = devices_.extract(device);
  if (!gone || !gone.mapped().process)
    return;
  const auto process = gone.mapped().process;
  if (std::ranges::none_of(devices_, [&](auto& x) { return x.second.process == process; }))
    processes_.erase(*process);
}

/// By how much the next look is late, this process was itself paused, and could hear no answer.
void watch::notice_own_pause(time_point now) {
  constexpr duration usual_lateness = std::chrono::milliseconds{10};
  if (!next_look_ || now - *next_look_ <= usual_lateness)
    return;
  const duration pause = now - *next_look_;
  for (auto& [number, process] : processes_)
    process.excuse(pause, now);
  for (auto& [id, device] : devices_)
    device.suspect.excuse(pause, now);
  next_look_ = now; // it is due
}

std::optional<proto::Suspicion> watch::judge(watched& x, time_point now) {
  if (x.process) {
    auto silent = processes_[*x.process].length(now);
    if (silent > std::max(options_.pause_max, options_.late_after)) {
      proto::Suspicion result;
      result.set_cause(proto::Suspicion::PROCESS_SILENT);
      result.set_length_ns(static_cast<uint64_t>(silent.count()));
      return result;
    }
    if (silent > options_.late_after)
      return std::nullopt; // the process has paused; what the device would answer is unknown
  }
  auto found = x.suspect.evaluate(now);
  return found.suspected ? std::optional{std::move(found.evidence)} : std::nullopt;
}

uint64_t watch::on_request(const std::vector<device_id>& devices, time_point now) {
  ++requests_;
  for (auto device : devices)
    if (auto x = devices_.find(device); x != devices_.end()) {
      x->second.suspect.on_request(requests_, now);
      if (x->second.process)
        processes_[*x->second.process].on_request(now);
    }
  return requests_;
}

void watch::on_report(process_number process, time_point now) {
  notice_own_pause(now);
  if (processes_[process].on_answer(now) <= options_.late_after)
    return;
  for (auto& [id, device] : devices_)
    if (device.process == process)
      device.suspect.start_afresh(now);
}

void watch::on_answer(const proto::Progress& x, time_point now) {
  auto i = devices_.find(device_id{x.device_id()});
  if (i == devices_.end())
    return;
  notice_own_pause(now);
  auto& [suspect, latest, process, answered_at] = i->second;
  suspect.on_answer(x.number(), std::chrono::nanoseconds{x.busy() ? x.busy_for_ns() : 0}, now);
  if (x.sequence() != latest.sequence() || x.epoch() != latest.epoch() || x.round() != latest.round()
      || x.doing() != latest.doing()) // it names the pieces of a block, too
    last_progress_ = now;
  latest = x;
  answered_at = now;
}

watch::knowledge watch::known(device_id device, time_point now) const {
  auto i = devices_.find(device);
  if (i == devices_.end())
    return {};
  auto& x = i->second;
  knowledge result;
  if (x.answered_at) {
    result.latest = &x.latest;
    result.age = now - *x.answered_at;
  }
  result.answers = x.suspect.latest_answers();
  if (auto process = x.process ? processes_.find(*x.process) : processes_.end(); process != processes_.end())
    result.silent = process->second.length(now);
  return result;
}

} // namespace ringmaster
