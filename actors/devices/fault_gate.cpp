#include "actors/devices/fault_gate.hpp"

#include "actors/calls/request_limit.hpp"
#include "actors/devices/device.hpp"

#include <fmt/format.h>

namespace ringmaster {

caf::error fault_gate::inject(const proto::FaultRequest& x) {
  auto self = device_.self;
  if (!proto::FaultRequest::Kind_IsValid(x.kind()))
    return make_error(errc::invalid_argument,
                      fmt::format("fault kind {} is not one of this version's", static_cast<int>(x.kind())));
  if (x.at_step() || x.stream_id() != 0) {
    auto target = device_.stream_of(stream_id{x.stream_id()});
    if (!target)
      return std::move(target.error());
    self->send(*target, x);
    return caf::none;
  }
  if (device_.streams.empty())
    return device_.not_joined();
  if (x.kind() == proto::FaultRequest::KILL) {
    self->send(device_.streams.begin()->second, x); // the death of a stream is the device's
    return caf::none;
  }
  for (auto& entry : device_.streams)
    self->send(entry.second, x);
  if (x.kind() == proto::FaultRequest::HANG)
    hang(self, request_limit(x.delay_ns()), [] {});
  return caf::none;
}

} // namespace ringmaster
