#include "runtime/coordination/access_rules.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace ringmaster;

namespace {

constexpr communicator_id comm_one{1}, comm_two{2}, comm_unknown{9};
constexpr device_id held_gpu{7}, other_gpu{8};

calling_process process_as(role as, const std::string& id, const std::string& name = {}) {
  return {{as, name}, "10.0.0.1:1", id};
}

} // namespace

TEST_CASE("access rules: a client uses what its own process has made, and nothing of another one") {
  access_rules x;
  const auto alice = process_as(role::client, "a"), bob = process_as(role::client, "b");
  x.made(comm_one, alice.maker());
  x.made(comm_two, bob.maker());
  CHECK(x.may_use(alice, comm_one, false));
  CHECK_FALSE(x.may_use(alice, comm_two, false));
  CHECK(x.may_use(alice, comm_unknown, false));  // whose own error says more
  CHECK_FALSE(x.may_use(alice, comm_two, true)); // a device in its process does not help a client
  x.ended(comm_two);
  CHECK(x.may_use(alice, comm_two, false));
}

TEST_CASE("access rules: what was made with a name belongs to all processes with it, whatever their process") {
  access_rules x;
  const auto one = process_as(role::client, "a", "alice"), other = process_as(role::client, "b", "alice");
  x.made(comm_one, one.maker());
  CHECK(x.may_use(other, comm_one, false));
  CHECK_FALSE(x.may_use(process_as(role::client, "a", "bob"), comm_one, false));
  CHECK_FALSE(x.may_use(process_as(role::client, "a"), comm_one, false));
  CHECK_FALSE(x.may_use(process_as(role::client, "alice"), comm_one, false)); // a process is no name
}

TEST_CASE("access rules: members, operators and, without a secret, all processes use everything") {
  access_rules x;
  x.made(comm_one, process_as(role::client, "a").maker());
  x.allocated({held_gpu, 100}, 50, process_as(role::client, "a").maker());
  for (const auto as : {role::member, role::coordinator, role::operating, role::stranger}) {
    const auto who = process_as(as, "b");
    CHECK(x.may_use(who, comm_one, false));
    CHECK(x.may_use(who, access_rules::device_place{{comm_one}, "a"}));
    CHECK(x.may_use(who, owned_range{held_gpu, 100}, 50));
  }
  x.made(comm_two, process_as(role::member, "m").maker());
  CHECK_FALSE(x.may_use(process_as(role::client, "a"), comm_two, false));
}

TEST_CASE("access rules: a client uses free devices and those in its communicators") {
  access_rules x;
  const auto alice = process_as(role::client, "a");
  x.made(comm_one, alice.maker());
  x.made(comm_two, process_as(role::client, "b").maker());
  CHECK(x.may_use(alice, access_rules::device_place{{}, "n"}));
  CHECK(x.may_use(alice, access_rules::device_place{{comm_one}, "n"}));
  CHECK(x.may_use(alice, access_rules::device_place{{comm_one, comm_two}, "n"}));
  CHECK_FALSE(x.may_use(alice, access_rules::device_place{{comm_two}, "n"}));
  CHECK_FALSE(x.may_use(alice, access_rules::device_place{{comm_two}, "a"}));
}

TEST_CASE("access rules: a rank uses its own process's devices and the communicators that these are in") {
  access_rules x;
  x.made(comm_one, "");
  const auto rank = process_as(role::rank, "r", "3");
  CHECK(x.may_use(rank, comm_one, true));
  CHECK_FALSE(x.may_use(rank, comm_one, false));
  CHECK(x.may_use(rank, access_rules::device_place{{comm_one}, "r"}));
  CHECK_FALSE(x.may_use(rank, access_rules::device_place{{comm_one}, "other"}));
  CHECK(rank.maker() == "process r"); // its name is a number that other jobs have, too
}

TEST_CASE("access rules: memory that another client has allocated is not touched at any of its bytes") {
  access_rules x;
  const auto alice = process_as(role::client, "a"), bob = process_as(role::client, "b");
  x.allocated({held_gpu, 100}, 50, bob.maker());
  x.allocated({held_gpu, 200}, 50, alice.maker());
  const auto may = [&](uint64_t address, uint64_t bytes) {
    return x.may_use(alice, owned_range{held_gpu, address}, bytes);
  };
  CHECK(may(0, 100));
  CHECK_FALSE(may(0, 101));
  CHECK_FALSE(may(0, UINT64_MAX));
  CHECK_FALSE(may(100, 1));
  CHECK_FALSE(may(149, 1));
  CHECK_FALSE(may(149, 60));
  CHECK(may(150, 100));
  CHECK(may(200, 50));
  CHECK(x.may_use(alice, owned_range{other_gpu, 100}, 50));
  CHECK_FALSE(x.may_use(bob, owned_range{held_gpu, 0}, 201));
  x.freed({held_gpu, 100});
  CHECK(may(0, 200));
  x.allocated({held_gpu, 100}, 50, bob.maker());
  x.gone(held_gpu);
  CHECK(may(100, 50));
}
