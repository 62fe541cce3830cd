#include "runtime/coordination/rendezvous_desk.hpp"

#include "messages/errc.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;

namespace {

using numbers = std::vector<rendezvous_desk::number>;

proto::RendezvousRequest rank_of(uint32_t rank, uint32_t world_size, const std::string& group = "world") {
  proto::RendezvousRequest result;
  result.set_group(group);
  result.set_rank(rank);
  result.set_world_size(world_size);
  result.set_device_id(100 + rank);
  return result;
}

proto::FinalizeRequest leaving(uint32_t rank) {
  proto::FinalizeRequest result;
  result.set_group("world");
  result.set_rank(rank);
  return result;
}

proto::RankAbsentRequest ended(uint32_t rank, const std::string& cause = "it ended") {
  proto::RankAbsentRequest result;
  result.set_group("world");
  result.set_rank(rank);
  result.set_cause(cause);
  return result;
}

/// Rank r has come under the number 10 + r, and its device is 100 + r.
struct three_ranks {
  rendezvous_desk desk;

  bool come(uint32_t rank) {
    auto all = desk.arrived(rank_of(rank, 3), 10 + rank);
    REQUIRE(all);
    return all->has_value();
  }

  void work() {
    for (uint32_t rank = 0; rank < 3; ++rank)
      come(rank);
    desk.formed("world", communicator_id{7});
  }
};

} // namespace

TEST_CASE("rendezvous_desk: the last to come completes the group, whose devices are in rank order") {
  three_ranks x;
  CHECK_FALSE(x.come(2));
  CHECK_FALSE(x.come(0));
  auto all = x.desk.arrived(rank_of(1, 3), 11);
  REQUIRE(all);
  REQUIRE(*all);
  CHECK((*all)->name == "world");
  CHECK((*all)->devices == std::vector{device_id{100}, device_id{101}, device_id{102}});
  CHECK(x.desk.formed("world", communicator_id{7}) == numbers{10, 11, 12});
  CHECK_FALSE(x.desk.expired(10, "1 s")); // it has been answered
}

TEST_CASE("rendezvous_desk: one that waits longest says for all who is missing, and they may come again") {
  three_ranks x;
  x.come(1);
  x.come(0);
  auto late = x.desk.expired(11, "500 ms");
  REQUIRE(late);
  CHECK(late->to == numbers{10, 11});
  CHECK(render(late->problem) == "rank 2 of 3 of \"world\" did not come within 500 ms");
  CHECK(code_of(late->problem) == errc::timed_out);
  CHECK_FALSE(x.desk.expired(10, "500 ms"));
  CHECK_FALSE(x.come(2));
  late = x.desk.expired(12, "1 s");
  REQUIRE(late);
  CHECK(render(late->problem) == "ranks 0, 1 of 3 of \"world\" did not come within 1 s");
}

TEST_CASE("rendezvous_desk: one that waits longest knows for whom, until all have come") {
  three_ranks x;
  x.come(0);
  auto missing = x.desk.awaited_by(10);
  REQUIRE(missing);
  CHECK(missing->text == "ranks 1, 2 of 3 of \"world\"");
  CHECK(missing->count == 2);
  x.come(1);
  missing = x.desk.awaited_by(10);
  REQUIRE(missing);
  CHECK(missing->text == "rank 2 of 3 of \"world\"");
  CHECK(missing->count == 1);
  CHECK_FALSE(x.desk.awaited_by(11)); // the other says it
  x.come(2);
  x.desk.formed("world", communicator_id{7});
  CHECK_FALSE(x.desk.awaited_by(10));
}

TEST_CASE("rendezvous_desk: of many that are missing it names some") {
  rendezvous_desk desk;
  REQUIRE(desk.arrived(rank_of(0, 100), 1));
  CHECK(render(desk.expired(1, "1 s")->problem).find("ranks 1, 2, 3, ") == 0);
  REQUIRE(desk.arrived(rank_of(0, 100), 1));
  CHECK(render(desk.expired(1, "1 s")->problem).find(", 16 and 83 more of 100") != std::string::npos);
}

TEST_CASE("rendezvous_desk: refuses what is impossible") {
  three_ranks x;
  x.come(1);
  auto refusal = [&](const proto::RendezvousRequest& y) { return render(x.desk.arrived(y, 99).error()); };
  CHECK(refusal(rank_of(1, 3)) == "rank 1 of \"world\" has come already, with device 0x65");
  CHECK(refusal(rank_of(2, 4)) == "rank 2 has a world size of 4 for \"world\", but other ranks have 3");
  CHECK(refusal(rank_of(3, 3)) == "there is no rank 3 of 3: ranks are counted from 0, and 65536 at most");
  CHECK(refusal(rank_of(0, 0)) == "there is no rank 0 of 0: ranks are counted from 0, and 65536 at most");
  CHECK(x.desk.arrived(rank_of(1, 2, "other"), 99));
}

TEST_CASE("rendezvous_desk: a rank that is lost before all have come ends the waiting") {
  three_ranks x;
  x.come(0);
  x.come(2);
  auto told = x.desk.lost(device_id{102}, "it was killed");
  REQUIRE(told.size() == 1);
  CHECK(told[0].to == numbers{10, 12});
  CHECK(render(told[0].problem)
        == "rank 2 of 3 of \"world\" (device 0x66) was lost before all had come: it was killed");
  CHECK(x.desk.lost(device_id{100}, "it was killed").empty());
}

TEST_CASE("rendezvous_desk: a communicator that cannot be made is reported to all") {
  three_ranks x;
  for (uint32_t rank = 0; rank < 3; ++rank)
    x.come(rank);
  CHECK(x.desk.formed("world", make_error(errc::too_many, "no room")) == numbers{10, 11, 12});
  CHECK_FALSE(x.come(0)); // from the beginning
}

TEST_CASE("rendezvous_desk: all leave together, and no one waits for one that is lost") {
  three_ranks x;
  x.work();
  CHECK_FALSE(x.desk.leaves(leaving(2), 22));
  CHECK(x.desk.lost(device_id{101}, "it was killed").empty());
  CHECK_FALSE(x.desk.next_left());
  auto left = x.desk.leaves(leaving(0), 20);
  REQUIRE(left);
  CHECK(left->communicator == communicator_id{7});
  CHECK(left->to == numbers{20, 22});
  left = x.desk.leaves(leaving(1), 21); // its device only was lost
  REQUIRE(left);
  CHECK(left->to == numbers{21});
}

TEST_CASE("rendezvous_desk: the loss of the last that works lets the others go") {
  three_ranks x;
  x.work();
  CHECK_FALSE(x.desk.leaves(leaving(0), 20));
  CHECK_FALSE(x.desk.leaves(leaving(2), 22));
  x.desk.lost(device_id{101}, "it was killed");
  auto left = x.desk.next_left();
  REQUIRE(left);
  CHECK(left->to == numbers{20, 22});
  CHECK_FALSE(x.desk.next_left());
}

TEST_CASE("rendezvous_desk: one that has waited long enough for the others to leave hears who works") {
  three_ranks x;
  x.work();
  x.desk.leaves(leaving(1), 21);
  auto late = x.desk.expired(21, "5 s");
  REQUIRE(late);
  CHECK(late->to == numbers{21});
  CHECK(render(late->problem) == "ranks 0, 2 of 3 of \"world\" had not left after 5 s");
  CHECK_FALSE(x.desk.leaves(leaving(0), 20));
  auto left = x.desk.leaves(leaving(2), 22);
  REQUIRE(left);
  CHECK(left->to == numbers{20, 22});
}

TEST_CASE("rendezvous_desk: those that wait for a rank whose process has ended hear why, and so do those that come") {
  three_ranks x;
  x.come(0);
  x.come(2);
  auto told = x.desk.absent(ended(1, "its process exited with status 7"));
  REQUIRE(told.size() == 1);
  CHECK(told.front().to == numbers{10, 12});
  CHECK(render(told.front().problem) == "rank 1 of 3 of \"world\" does not come: its process exited with status 7");
  auto later = x.desk.arrived(rank_of(2, 3), 22);
  REQUIRE_FALSE(later);
  CHECK(render(later.error()) == render(told.front().problem));
  CHECK_FALSE(x.come(1)); // it does, by another process
  CHECK_FALSE(x.come(0));
  CHECK(x.come(2));
}

TEST_CASE("rendezvous_desk: the end of a rank that has come, or of one that no one waits for, changes nothing") {
  three_ranks x;
  auto gone = ended(1);
  x.come(1);
  CHECK(x.desk.absent(gone).empty());
  x.come(0);
  CHECK(x.come(2));
  x.desk.formed("world", communicator_id{7});
  CHECK(x.desk.absent(gone).empty());
  gone.set_group("another");
  CHECK(x.desk.absent(gone).empty());
}

TEST_CASE("rendezvous_desk: what became of the ranks of one run is nothing to the next one of that name") {
  three_ranks x;
  x.work();
  for (uint32_t rank = 0; rank < 3; ++rank)
    x.desk.leaves(leaving(rank), 20 + rank);
  for (uint32_t rank = 0; rank < 3; ++rank)
    CHECK(x.desk.absent(ended(rank)).empty());
  CHECK_FALSE(x.come(0));
  CHECK_FALSE(x.come(1));
  CHECK(x.come(2));
}

TEST_CASE("rendezvous_desk: a rank that will not come is remembered for a while only") {
  rendezvous_desk desk;
  auto gone = ended(1);
  rendezvous_desk::time_point now{};
  CHECK(desk.absent(gone, now).empty());
  CHECK_FALSE(desk.arrived(rank_of(0, 3), 10, now + rendezvous_desk::absent_kept));
  CHECK(desk.arrived(rank_of(0, 3), 10, now + rendezvous_desk::absent_kept + std::chrono::seconds{1}));
}

TEST_CASE("rendezvous_desk: a rank that is lost while others work has departed, and so has one that finalizes") {
  three_ranks x;
  using departures = std::vector<rank_departure>;
  x.work();
  CHECK(x.desk.take_departures().empty());
  x.desk.lost(device_id{102}, "it ended");
  CHECK(x.desk.take_departures() == departures{{"world", 2, false}});
  CHECK_FALSE(x.desk.leaves(leaving(0), 20));
  CHECK(x.desk.take_departures() == departures{{"world", 0, true}});
  x.desk.lost(device_id{100}, "it ended"); // it had left
  CHECK(x.desk.take_departures().empty());
  x.desk.lost(device_id{101}, "it ended"); // no one is left to need it
  CHECK(x.desk.take_departures().empty());
}

TEST_CASE("rendezvous_desk: one whose device is lost may still finalize; one that has not come departs from nothing") {
  three_ranks x;
  using departures = std::vector<rank_departure>;
  x.come(0);
  x.desk.lost(device_id{100}, "it ended");
  CHECK(x.desk.take_departures().empty());
  three_ranks y;
  y.work();
  y.desk.lost(device_id{101}, "it was killed on request");
  y.desk.leaves(leaving(1), 21);
  CHECK(y.desk.take_departures() == departures{{"world", 1, false}, {"world", 1, true}});
}
