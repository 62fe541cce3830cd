#include "runtime/coordination/ownership.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;

namespace {

constexpr client_id anna{1}, ben{2};
constexpr communicator_id first{1}, second{2};
constexpr device_id device{7}, other_device{8};

} // namespace

TEST_CASE("ownership: a client that goes leaves behind what it has made, and nothing of the others") {
  ownership owned;
  owned.made(anna, first);
  owned.made(ben, second);
  owned.allocated(anna, {device, 256});
  owned.allocated(ben, {device, 512});
  auto left = owned.take(anna);
  CHECK(left.communicators == std::set{first});
  CHECK(left.ranges == std::set<owned_range>{{device, 256}});
  CHECK(owned.owner_of(first) == std::nullopt);
  CHECK(owned.owner_of(second) == ben);
  CHECK_FALSE(owned.owns_anything(anna));
  CHECK(owned.take(anna).communicators.empty());
  CHECK(owned.owns_anything(ben));
}

TEST_CASE("ownership: what anybody has given back is nobody's") {
  ownership owned;
  owned.made(anna, first);
  owned.allocated(anna, {device, 256});
  owned.ended(first);
  CHECK(owned.owns_anything(anna));
  owned.freed({device, 256});
  CHECK_FALSE(owned.owns_anything(anna));
  owned.ended(second); // that was never anybody's
  owned.freed({device, 1});
  CHECK(owned.take(anna).ranges.empty());
}

TEST_CASE("ownership: an address that is given out again is its new owner's") {
  ownership owned;
  owned.allocated(anna, {device, 256});
  owned.allocated(ben, {device, 256});
  CHECK_FALSE(owned.owns_anything(anna));
  CHECK(owned.take(ben).ranges.size() == 1);
}

TEST_CASE("ownership: a device that is gone takes its ranges with it, and no other's") {
  ownership owned;
  owned.allocated(anna, {device, 0});
  owned.allocated(anna, {device, UINT64_MAX});
  owned.allocated(anna, {other_device, 0});
  owned.allocated(anna, {device_id{6}, 5});
  owned.gone(device);
  CHECK(owned.take(anna).ranges == std::set<owned_range>{{device_id{6}, 5}, {other_device, 0}});
}
