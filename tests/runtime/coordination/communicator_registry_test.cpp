#include "runtime/coordination/communicator_registry.hpp"

#include "messages/errc.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;

namespace {

communicator_id make(communicator_registry& registry, proto::FailurePolicy policy = proto::SHRINK) {
  auto id = registry.new_id();
  known_communicator what;
  what.policy = policy;
  registry.made(id, what);
  return id;
}

std::string why_not(const communicator_registry& registry, communicator_id id) {
  auto known = registry.known(id);
  REQUIRE_FALSE(known);
  CHECK(known.error() == errc::unknown_communicator);
  return render(known.error());
}

constexpr device_id lost_device{4};

} // namespace

TEST_CASE("communicator_registry: says of one that is not alive whether it failed, was destroyed or never was") {
  proto::JournalState earlier;
  earlier.set_comm_id(6);
  communicator_registry registry{4096, std::make_shared<id_ledger>(earlier)};
  auto failed = make(registry);
  auto destroyed = make(registry);
  CHECK(failed == communicator_id{7});
  CHECK(registry.known(failed));
  CHECK(registry.ended(failed, make_error(errc::killed_on_request, "it was killed")));
  CHECK(registry.ended(destroyed, {}));
  CHECK_FALSE(registry.ended(destroyed, make_error(errc::timed_out, "too late")));
  CHECK(why_not(registry, failed) == "communicator 7 has failed: it was killed");
  CHECK(why_not(registry, destroyed) == "communicator 8 has been destroyed");
  CHECK(why_not(registry, communicator_id{9})
        == "there is no communicator 9: CommInit makes one and returns its number");
  CHECK(why_not(registry, communicator_id{0})
        == "there is no communicator 0: CommInit makes one and returns its number");
}

TEST_CASE("communicator_registry: there is room until its limit, and again when one has ended") {
  communicator_registry registry{2};
  auto first = make(registry);
  CHECK_FALSE(registry.admit(1));
  auto too_many = registry.admit(2);
  CHECK(too_many == errc::too_many);
  CHECK(render(too_many) == "1 communicators are alive, 2 more would be over the limit of 2; destroy some");
  make(registry);
  CHECK(registry.admit(1) == errc::too_many);
  registry.ended(first, {});
  CHECK_FALSE(registry.admit(1));
}

TEST_CASE("communicator_registry: a lost device's inputs are wanted until all of its places are filled or gone") {
  communicator_registry registry;
  auto first = make(registry, proto::REPLACE);
  auto second = make(registry, proto::REPLACE);
  auto other = make(registry, proto::SHRINK);
  CHECK(registry.all_replace({}));
  CHECK(registry.all_replace({first, second}));
  CHECK_FALSE(registry.all_replace({first, other}));
  registry.member_lost(lost_device, {first, second});
  CHECK(registry.inputs_wanted(lost_device));
  registry.place_filled(lost_device, first);
  CHECK(registry.inputs_wanted(lost_device));
  CHECK(registry.ended(second, {})->lost == std::set{lost_device});
  CHECK_FALSE(registry.inputs_wanted(lost_device));
}
