#include "runtime/coordination/ownership.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;

namespace {

constexpr client_id anna{1}, ben{2};
constexpr communicator_id training{1}, evaluation{2};
constexpr device_id held_device{7}, other_device{8};

} // namespace

TEST_CASE("ownership: a client that goes leaves behind what it has made, and nothing of the others") {
  ownership owned;
  owned.made(anna, training);
  owned.made(ben, evaluation);
  owned.allocated(anna, {held_device, 256});
  owned.allocated(ben, {held_device, 512});
  auto left = owned.take(anna);
  CHECK(left.communicators == std::set{training});
  CHECK(left.ranges == std::set<owned_range>{{held_device, 256}});
  CHECK(owned.owner_of(training) == std::nullopt);
  CHECK(owned.owner_of(evaluation) == ben);
  CHECK_FALSE(owned.owns_anything(anna));
  CHECK(owned.take(anna).communicators.empty());
  CHECK(owned.owns_anything(ben));
}

TEST_CASE("ownership: what anybody has given back is no one's") {
  ownership owned;
  owned.made(anna, training);
  owned.allocated(anna, {held_device, 256});
  owned.ended(training);
  CHECK(owned.owns_anything(anna));
  owned.freed({held_device, 256});
  CHECK_FALSE(owned.owns_anything(anna));
  owned.ended(evaluation); // that was never anybody's
  owned.freed({held_device, 1});
  CHECK(owned.take(anna).ranges.empty());
}

TEST_CASE("ownership: an address that is given out again is its new owner's") {
  ownership owned;
  owned.allocated(anna, {held_device, 256});
  owned.allocated(ben, {held_device, 256});
  CHECK_FALSE(owned.owns_anything(anna));
  CHECK(owned.take(ben).ranges.size() == 1);
}

TEST_CASE("ownership: a device that is gone takes its ranges with it, and no other's") {
  ownership owned;
  owned.allocated(anna, {held_device, 0});
  owned.allocated(anna, {held_device, UINT64_MAX});
  owned.allocated(anna, {other_device, 0});
  owned.allocated(anna, {device_id{6}, 5});
  owned.gone(held_device);
  CHECK(owned.take(anna).ranges == std::set<owned_range>{{device_id{6}, 5}, {other_device, 0}});
}
