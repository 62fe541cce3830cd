#include "runtime/coordination/init_desk.hpp"

#include "messages/errc.hpp"

#include <doctest/doctest.h>

#include <random>

using namespace ringmaster;

namespace {

const device_ids init_ranks{device_id{1}, device_id{2}};

caf::expected<device_ids> no_ranks() {
  return make_error(errc::too_few_devices, "too few");
}

template <class What>
What init_step(const init_desk::step& x) {
  REQUIRE(std::holds_alternative<What>(x));
  return std::get<What>(x);
}

} // namespace

TEST_CASE("init desk: the communicator is made when each device has given a sign of life") {
  init_desk desk;
  desk.begin(7);
  CHECK(init_step<init_desk::ask>(desk.next(7, init_ranks)).devices == init_ranks);
  CHECK_FALSE(desk.heard(7, device_id{2}));
  CHECK(desk.heard(7, device_id{1}));
  CHECK(init_step<init_desk::make>(desk.next(7, init_ranks)).ranks == init_ranks);
  CHECK_FALSE(desk.has(7));
}

TEST_CASE("init desk: a device that has answered is not asked again") {
  init_desk desk;
  desk.begin(7);
  desk.next(7, init_ranks);
  CHECK_FALSE(desk.heard(7, device_id{1}));
  CHECK(desk.given_up(7, "device 0x2 gave no sign of life"));
  const device_ids one_three{device_id{1}, device_id{3}};
  CHECK(init_step<init_desk::ask>(desk.next(7, one_three)).devices == device_ids{device_id{3}});
}

TEST_CASE("init desk: after a silent device the call waits for another one, and is refused when its limit has passed") {
  init_desk desk;
  desk.begin(7);
  desk.next(7, device_ids{device_id{1}});
  CHECK(desk.given_up(7, "device 0x1 gave no sign of life"));
  CHECK(init_step<init_desk::wait>(desk.next(7, no_ranks())).starts_timer);
  CHECK(desk.waiting() == std::vector<init_desk::number>{7});
  CHECK_FALSE(init_step<init_desk::wait>(desk.next(7, no_ranks())).starts_timer); // one joined, but it was taken
  CHECK(desk.expired(7));
  auto problem = init_step<init_desk::refuse>(desk.next(7, no_ranks())).problem;
  CHECK(code_of(problem) == errc::too_few_devices);
  CHECK(render(problem) == "too few; device 0x1 gave no sign of life");
  CHECK(desk.size() == 0);
}

TEST_CASE("init desk: a limit that passes while devices are asked counts when they have answered") {
  init_desk desk;
  desk.begin(7);
  desk.next(7, device_ids{device_id{1}});
  desk.given_up(7, "silent");
  init_step<init_desk::wait>(desk.next(7, no_ranks()));
  init_step<init_desk::ask>(desk.next(7, device_ids{device_id{2}}));
  CHECK_FALSE(desk.expired(7));
  CHECK(desk.lost(7));
  init_step<init_desk::refuse>(desk.next(7, no_ranks()));
}

TEST_CASE("init desk: without a silent device too few devices are refused at once") {
  init_desk desk;
  desk.begin(7);
  CHECK(code_of(init_step<init_desk::refuse>(desk.next(7, no_ranks())).problem) == errc::too_few_devices);
}

TEST_CASE("init desk: a device that could not be asked refuses the call, instead of being asked for ever") {
  init_desk desk;
  desk.begin(7);
  desk.next(7, init_ranks);
  CHECK_FALSE(desk.not_asked(7, make_error(errc::too_many, "8192 calls")));
  CHECK(desk.heard(7, device_id{2}));
  CHECK(code_of(init_step<init_desk::refuse>(desk.next(7, init_ranks)).problem) == errc::too_many);
}

TEST_CASE("init desk: every call ends, whatever becomes of its devices") {
  for (uint32_t seed = 1; seed <= 500; ++seed) {
    CAPTURE(seed);
    std::mt19937 random{seed};
    init_desk desk;
    desk.begin(1);
    uint64_t next_device = 3;
    device_ids free = init_ranks;
    bool has_limit = false;
    for (int turn = 0; desk.has(1); ++turn) {
      REQUIRE(turn < 100);
      const bool enough = free.size() >= 2;
      auto step = desk.next(1, enough ? caf::expected<device_ids>{device_ids{free[0], free[1]}} : no_ranks());
      if (auto asked = std::get_if<init_desk::ask>(&step)) {
        for (size_t i = 0; i < asked->devices.size(); ++i) {
          const auto id = asked->devices[i];
          bool last = false;
          if (auto outcome = random() % 4; outcome < 2) {
            last = desk.heard(1, id);
          } else {
            std::erase(free, id);
            last = outcome == 2 ? desk.lost(1) : desk.given_up(1, "silent");
          }
          CHECK(last == (i + 1 == asked->devices.size()));
        }
      } else if (auto waits = std::get_if<init_desk::wait>(&step)) {
        CHECK(waits->starts_timer == !has_limit);
        has_limit = true;
        if (random() % 4 == 0)
          CHECK(desk.expired(1));
        else
          free.push_back(device_id{next_device++});
      } else if (auto made = std::get_if<init_desk::make>(&step)) {
        CHECK(made->ranks.size() == 2);
      }
    }
  }
}
