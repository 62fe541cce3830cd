#include "runtime/coordination/spare_desk.hpp"

#include "messages/errc.hpp"
#include "tests/runtime/coordination/devices.hpp"

using namespace ringmaster;
using namespace ringmaster::test;
using kind = spare_desk::step::kind;

namespace {

constexpr device_id first_spare{4}, second_spare{5};
constexpr communicator_id communicator{1};

/// A communicator of devices that are not here, one of them lost, and the devices that are.
struct desk_at_work {
  explicit desk_at_work(std::initializer_list<uint64_t> ids) {
    for (auto id : ids)
      devices.joined(joining(id));
    proto::SpareRequest request;
    request.set_comm_id(communicator.value);
    *request.mutable_lost() = joining(2).metadata;
    request.set_timeout_ns(5'000'000'000);
    desk.asked(1, request);
  }

  /// The step, with its device taken or not as it should be.
  spare_desk::step checked(spare_desk::step step) {
    bool taken = step.what == kind::restore || step.what == kind::hand_over;
    for (auto& [id, known] : devices.devices())
      CHECK(known.communicators.count(communicator) == (taken && id == step.device ? 1 : 0));
    return step;
  }
  spare_desk::step next() { return checked(desk.next(1, true)); }

  device_registry devices;
  spare_desk desk{devices};
};

caf::error refusal_by_device() {
  return make_error(errc::device_lost, "the stream died before it had run this command");
}

} // namespace

TEST_CASE("spare_desk: a free device gets the inputs, and is handed over when it has them all") {
  desk_at_work x{4, 5};
  auto step = x.next();
  CHECK(step.what == kind::restore);
  CHECK(step.device == first_spare);
  CHECK(x.desk.waiting().empty());
  CHECK(x.desk.restoring(1, 2, {}, true).what == kind::wait);
  CHECK(x.desk.copied(1, {}, true).what == kind::wait);
  step = x.checked(x.desk.copied(1, {}, true));
  CHECK(step.what == kind::hand_over);
  CHECK(step.device == first_spare);
  CHECK_FALSE(step.problem);
  x.desk.answered(1);
  CHECK_FALSE(x.desk.has(1));
  CHECK(x.desk.expired(1, true).what == kind::wait); // its limit comes too late
}

TEST_CASE("spare_desk: without inputs the device is handed over at once") {
  desk_at_work x{4};
  x.next();
  CHECK(x.checked(x.desk.restoring(1, 0, {}, true)).what == kind::hand_over);
}

TEST_CASE("spare_desk: what the host has not got no other device would get either") {
  desk_at_work x{4, 5};
  x.next();
  auto step = x.desk.restoring(1, 1, make_error(errc::device_lost, "never copied"), true);
  CHECK(step.what == kind::wait); // for the copy that is under way
  step = x.checked(x.desk.copied(1, {}, true));
  CHECK(step.what == kind::hand_over);
  CHECK(step.device == first_spare);
  CHECK(render(step.problem) == "never copied");
}

// Else who asked hears that there is none, though the next one is there.
TEST_CASE("spare_desk: one that dies while it gets its inputs is not handed over: the next one is tried") {
  for (bool refuses_first : {false, true}) {
    CAPTURE(refuses_first);
    desk_at_work x{4, 5};
    x.next();
    x.desk.restoring(1, 2, {}, true);
    CHECK(x.desk.copied(1, refuses_first ? refusal_by_device() : caf::error{}, true).what == kind::wait);
    if (!refuses_first)
      x.devices.gone(first_spare, "it was killed");
    auto step = x.checked(x.desk.copied(1, refuses_first ? refusal_by_device() : caf::error{}, true));
    CHECK(step.what == kind::restore);
    CHECK(step.device == second_spare);
    step = x.checked(x.desk.restoring(1, 0, {}, true));
    CHECK(step.what == kind::hand_over);
    CHECK_FALSE(step.problem); // the first one's is not its
  }
}

TEST_CASE("spare_desk: the only one that refuses a copy may be dying: another is waited for") {
  desk_at_work x{4};
  x.next();
  x.desk.restoring(1, 1, {}, true);
  CHECK(x.checked(x.desk.copied(1, refusal_by_device(), true)).what == kind::wait);
  CHECK(x.desk.waiting() == std::vector<uint64_t>{1});
  CHECK(x.next().what == kind::wait); // not the same one again
  SUBCASE("one joins") {
    x.devices.gone(first_spare, "it was killed");
    x.devices.joined(joining(5));
    CHECK(x.next().what == kind::restore);
  }
  SUBCASE("none joins, and it lives: a place without its inputs is better than none") {
    auto step = x.checked(x.desk.expired(1, true));
    CHECK(step.what == kind::hand_over);
    CHECK(step.device == first_spare);
    CHECK(step.problem == errc::device_lost);
  }
  SUBCASE("none joins, and it has died") {
    x.devices.gone(first_spare, "it was killed");
    CHECK(x.checked(x.desk.expired(1, true)).what == kind::refuse);
  }
  SUBCASE("none joins, and another communicator has taken it") {
    x.devices.take(first_spare, communicator_id{9});
    CHECK(x.checked(x.desk.expired(1, true)).what == kind::refuse);
  }
}

TEST_CASE("spare_desk: it waits for one that is free and large enough, until its limit") {
  desk_at_work x{4};
  x.devices.take(first_spare, communicator_id{9});
  x.devices.joined(joining(5, 99));
  CHECK(x.next().what == kind::wait);
  SUBCASE("one leaves its communicator") {
    x.devices.leave(communicator_id{9});
    CHECK(x.next().what == kind::restore);
  }
  SUBCASE("none does") {
    auto step = x.checked(x.desk.expired(1, true));
    CHECK(step.what == kind::refuse);
    CHECK(step.problem == errc::too_few_devices);
    CHECK(render(step.problem)
          == "no spare with 100 bytes of memory was free within 5.0 s; of the cluster's 2 devices 1 are in no "
             "communicator");
  }
  SUBCASE("the communicator ends first") {
    auto step = x.desk.next(1, false);
    CHECK(step.what == kind::refuse);
    CHECK(step.problem == errc::unknown_communicator);
  }
}

TEST_CASE("spare_desk: a limit that passes while inputs are being copied is no reason to give up") {
  desk_at_work x{4};
  x.next();
  x.desk.restoring(1, 1, {}, true);
  CHECK(x.desk.expired(1, true).what == kind::wait);
  CHECK(x.checked(x.desk.copied(1, {}, true)).what == kind::hand_over);
}

TEST_CASE("spare_desk: two that ask at once get two devices") {
  desk_at_work x{4, 5};
  x.desk.asked(2, x.desk.request(1));
  auto one = x.desk.next(1, true), two = x.desk.next(2, true);
  CHECK(one.device == first_spare);
  CHECK(two.device == second_spare);
}
