#include "runtime/health/progress_desk.hpp"

#include "runtime/invariants/ensure.hpp"

namespace ringmaster {

std::optional<proto::ProgressReport> progress_desk::ask(key request, std::set<device_id> devices) {
  round made;
  made.report.set_comm_id(request.first.value);
  if (devices.empty())
    return std::move(made.report);
  made.silent = std::move(devices);
  open_[request] = std::move(made);
  return std::nullopt;
}

std::optional<proto::ProgressReport> progress_desk::on_progress(const proto::Progress& x) {
  auto i = open_.find({communicator_id{x.comm_id()}, x.number()});
  if (i == open_.end() || i->second.silent.erase(device_id{x.device_id()}) == 0)
    return std::nullopt;
  auto& [silent, report, reported] = i->second;
  *report.add_devices() = x;
  if (!reported && !silent.empty())
    return std::nullopt;
  auto result = report;
  report.clear_devices();
  if (silent.empty())
    open_.erase(i);
  return result;
}

std::optional<proto::ProgressReport> progress_desk::on_limit(key request) {
  auto i = open_.find(request);
  if (i == open_.end() || std::exchange(i->second.reported, true))
    return std::nullopt;
  ensure(!i->second.silent.empty(), "an open request waits for a device");
  auto result = i->second.report;
  i->second.report.clear_devices();
  return result;
}

} // namespace ringmaster
