#include "messages/received_handles.hpp"

#include "tests/support/deterministic_system.hpp"

#include <caf/binary_deserializer.hpp>
#include <caf/binary_serializer.hpp>

#include <functional>
#include <memory>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

/// What arrives where `x` was sent, after `meanwhile`.
template <class T>
T sent(caf::actor_system& sys, T x, const std::function<void()>& meanwhile) {
  std::vector<char> bytes;
  caf::binary_serializer sink{sys, bytes};
  REQUIRE(sink(x) == caf::none);
  meanwhile();
  T result;
  caf::binary_deserializer source{sys, bytes};
  REQUIRE(source(result) == caf::none);
  return result;
}

caf::actor echo_actor(caf::actor_system& sys) {
  return sys.spawn([](caf::event_based_actor*, int) -> caf::behavior { return {[](int x) { return x; }}; }, 0);
}

} // namespace

TEST_CASE(
  "received handles: one whose actor has died on the way is that of a dead actor, all others are as they came") {
  deterministic_system system;
  auto victim = echo_actor(system.sys), other = echo_actor(system.sys);
  auto dies = [&] { system.stop(victim); };
  auto dead = caf::actor_cast<caf::strong_actor_ptr>(victim), live = caf::actor_cast<caf::strong_actor_ptr>(other);
  device_handles handles{{live, live, live}, {dead, dead}, {live, dead, nullptr}};
  auto check = [&](const device_handles& arrived) {
    REQUIRE(arrived.size() == 3);
    CHECK(arrived[0].device == live);
    CHECK(arrived[0].relay == live);
    for (auto* handle : {&arrived[1].device, &arrived[1].stream, &arrived[2].stream})
      CHECK(is_lost(*handle));
    CHECK(arrived[1].device != arrived[1].stream);
    CHECK(!is_lost(arrived[2].device));
    CHECK(arrived[2].relay == nullptr);
  };
  SUBCASE("of members") {
    auto arrived = sent(system.sys, membership::of({}, handles), dies);
    CHECK(arrived.handles->at(1).device == nullptr); // as CAF loads it
    check(*received(system.sys, arrived).handles);
  }
  SUBCASE("of orders") {
    operation_orders orders{std::make_shared<const proto::OperationBatch>(),
                            std::make_shared<const device_handles>(handles)};
    auto arrived = sent(system.sys, orders, dies);
    check(*received(system.sys, arrived).members);
    CHECK(received(system.sys, arrived).batch == arrived.batch);
  }
  SUBCASE("of one device") {
    auto arrived = received(system.sys, sent(system.sys, handles[1], dies));
    CHECK(is_lost(arrived.device));
    CHECK(is_lost(arrived.stream));
  }
  SUBCASE("without a copy where all live") {
    auto arrived = sent(system.sys, membership::of({}, {{live, live}}), [] {});
    CHECK(received(system.sys, arrived).handles == arrived.handles);
    CHECK(received(system.sys, membership{}).handles == nullptr);
    dies();
  }
  system.stop(other);
}

TEST_CASE("received handles: a lost actor answers a monitor and a request as any dead actor, and drops all else") {
  deterministic_system system;
  auto handle = received(system.sys, device_handle{}).device;
  auto lost = caf::actor_cast<caf::actor>(handle);
  system.self->monitor(lost);
  bool is_down = false;
  system.self->receive(
    [&](const caf::down_msg& x) { is_down = x.source == lost.address() && code_of(x.reason) == errc::device_lost; },
    caf::after(caf::timespan{0}) >> [] {});
  CHECK(is_down);
  CHECK(!system.ask<int>(lost, 1));
  system.self->send(lost, 1);
  system.self->send_exit(lost, caf::exit_reason::kill);
  system.self->demonitor(lost.address());
  system.deliver_all();
  CHECK(system.self->mailbox().empty());
}
