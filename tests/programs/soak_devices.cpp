#include "tests/programs/soak_devices.hpp"

#include "messages/wire_ids.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>

namespace ringmaster::soak {

void soak_devices::harm_one() {
  auto there = connection_.host().devices();
  if (!there) {
    connection_.renew(there.error());
    return;
  }
  if (there->devices().empty())
    return;
  auto device = id_of(
    there->devices(static_cast<int>(random_() % static_cast<uint64_t>(there->devices_size()))).metadata());
  auto fault = draw();
  if (connection_.host().inject(device, fault))
    return; // it died meanwhile, or its process is stopped: then it strikes later
  constexpr const char* words[] = {"killed", "hung", "slowed"}; // by FaultRequest::Kind
  cluster_.note_device_fault(
    fmt::format("device 0x{:x} is {}{}{}", device, words[fault.kind()],
                fault.delay_ns() > 0 ? fmt::format(", {}", duration_text(fault.delay_ns())) : "",
                fault.at_step() ? fmt::format(", at step {} of what it runs next", fault.step()) : ""));
}

proto::FaultRequest soak_devices::draw() {
  using request = proto::FaultRequest;
  constexpr request::Kind kinds[] = {request::KILL, request::KILL, request::HANG, request::SLOW};
  constexpr uint64_t millisecond = 1'000'000;
  request result;
  result.set_kind(kinds[random_() % std::size(kinds)]);
  result.set_at_step(random_() % 2 == 0);
  result.set_step(static_cast<uint32_t>(random_() % 6));
  if (result.kind() == request::SLOW)
    result.set_delay_ns((1 + random_() % static_cast<uint64_t>(cluster_.how_fast().slow_max.count())) * millisecond);
  if (result.kind() == request::HANG && random_() % 2 == 0) // else for good
    result.set_delay_ns((100 + random_() % 3000) * millisecond);
  return result;
}

soak_cluster::milliseconds soak_devices::pause() {
  auto& pace = cluster_.how_fast();
  return pace.device_gap_min
         + random_() % static_cast<uint64_t>(pace.device_gap_spread.count()) * soak_cluster::milliseconds{1};
}

} // namespace ringmaster::soak
