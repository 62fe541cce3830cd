// A rank's handle against a coordinator that says what the test wants it to say.
#include "client/rank_communicator.hpp"

#include "messages/errc.hpp"
#include "tests/client/coordinated.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace std::chrono_literals;

namespace {

/// What the coordinator answers, and was asked.
struct rank_calls_script {
  gpu_sim::GetCommStatusResponse members;
  std::vector<proto::RankCall> calls;
};

caf::behavior answer_rank_calls(caf::event_based_actor*, std::shared_ptr<rank_calls_script> said) {
  return {[said](const gpu_sim::GetCommStatusRequest&) { return said->members; },
          [said](const proto::RankCall& x) {
            said->calls.push_back(x);
            proto::RankCallResponse answer;
            answer.set_success(true);
            answer.set_epoch(said->members.epoch());
            return answer;
          }};
}

struct four_members : coordinated<rank_calls_script> {
  four_members() : coordinated{answer_rank_calls} { members(1, {101, 102, 103, 104}); }

  void members(uint64_t epoch, const std::vector<uint64_t>& devices, const std::string& error = {}) {
    said->members = {};
    said->members.set_epoch(epoch);
    said->members.set_error(error);
    said->members.set_asyncerror("device 0x66 was lost: killed");
    for (auto id : devices)
      said->members.add_devices()->mutable_deviceid()->set_value(id);
  }

  rank_communicator attach(uint32_t rank) {
    auto handle = rank_communicator::attach(system, coordinator, communicator_id{5}, rank, 10s);
    REQUIRE_MESSAGE(handle, render(handle.error()));
    return std::move(*handle);
  }
};

/// Rank, size and epoch.
std::vector<uint64_t> place_of(const rank_communicator& x) {
  return {x.rank(), x.size(), x.epoch().value};
}

using place = std::vector<uint64_t>;

} // namespace

TEST_CASE(
  "rank communicator: after a loss, update tells each survivor its new rank, and the lost one that it is lost") {
  four_members x;
  std::vector<rank_communicator> ranks;
  for (uint32_t rank = 0; rank < 4; ++rank)
    ranks.push_back(x.attach(rank));
  CHECK(place_of(ranks[3]) == place{3, 4, 1});
  x.members(2, {101, 103, 104});
  CHECK(place_of(ranks[3]) == place{3, 4, 1}); // no rank has updated yet
  for (uint32_t rank : {0, 2, 3})
    CHECK(!ranks[rank].update(10s));
  CHECK(place_of(ranks[0]) == place{0, 3, 2});
  CHECK(place_of(ranks[2]) == place{1, 3, 2});
  CHECK(place_of(ranks[3]) == place{2, 3, 2});
  CHECK(ranks[2].device().deviceid().value() == 103);
  auto lost = ranks[1].update(10s);
  CHECK(code_of(lost) == errc::device_lost);
  CHECK(render(lost) == "device 0x66 is no longer a member of communicator 5: device 0x66 was lost: killed");
  CHECK(place_of(ranks[1]) == place{1, 4, 1});
}

TEST_CASE("rank communicator: ranks are the members' places, however these are ordered, and calls are of their epoch") {
  four_members x;
  auto handle = x.attach(2);
  x.members(7, {104, 109, 101, 103, 102});
  CHECK(!handle.update(10s));
  CHECK(place_of(handle) == place{3, 5, 7});
  auto call = handle.barrier();
  CHECK(!call.wait(10s));
  CHECK(call.epoch() == epoch_number{7});
  REQUIRE(x.said->calls.size() == 1);
  CHECK(x.said->calls[0].epoch() == 7);
  CHECK(x.said->calls[0].device_id() == 103);
  CHECK(x.said->calls[0].comm_id() == 5);
}

TEST_CASE("rank communicator: an update of a communicator that has ended fails and leaves the handle unchanged") {
  four_members x;
  auto handle = x.attach(2);
  x.members(0, {}, "communicator 5 has been destroyed");
  auto problem = handle.update(10s);
  CHECK(render(problem) == "communicator 5 has been destroyed");
  CHECK(place_of(handle) == place{2, 4, 1});
  x.members(1, {101, 102, 103, 104});
  auto beyond = rank_communicator::attach(x.system, x.coordinator, communicator_id{5}, 4, 10s);
  REQUIRE(!beyond);
  CHECK(code_of(beyond.error()) == errc::invalid_argument);
  CHECK(render(beyond.error()) == "communicator 5 has no rank 4: it has 4 ranks");
}

namespace {

/// A limit counts from the call, so that what is sent is less by the time until then. 0 stands for no limit.
void check_limit(uint64_t sent_ns, caf::timespan of_call) {
  constexpr uint64_t until_sent_max_ns = 500'000'000;
  const auto most = static_cast<uint64_t>(of_call.count());
  CHECK(sent_ns <= most);
  CHECK(sent_ns + (most == 0 ? 0 : until_sent_max_ns) >= most);
}

} // namespace

TEST_CASE("rank communicator: a group has the shortest of its calls' limits, wherever it stands among them") {
  struct row {
    std::vector<caf::timespan> limits;
    caf::timespan expected;
  };
  for (auto& [limits, expected] : {row{{3s, 2s}, 2s}, row{{2s, 3s}, 2s}, row{{0s, 4s, 0s}, 4s}, row{{5s, 2s, 9s}, 2s},
                                   row{{0s, 0s}, 0s}, row{{-1s, 3s}, 3s}, row{{}, 0s}}) {
    four_members x;
    auto handle = x.attach(0);
    handle.group_start();
    for (auto limit : limits)
      handle.barrier({.timeout = limit});
    CHECK(!handle.group_end().wait(10s));
    handle.barrier({.timeout = 7s}).wait(10s); // what comes after it has its own
    REQUIRE(x.said->calls.size() == 2);
    check_limit(x.said->calls[0].timeout_ns(), expected);
    CHECK(x.said->calls[0].parts_size() == static_cast<int>(limits.size()));
    check_limit(x.said->calls[1].timeout_ns(), 7s);
  }
}
