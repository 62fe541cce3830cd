#include "runtime/epochs/communicator_status.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace std::chrono_literals;

namespace {

using reported = proto::CommunicatorStatus;

/// A communicator of three devices with an all-reduce that runs, and who knows of it.
struct watched_operation {
  std::vector<rank_device> ranks;
  std::optional<epoch_change> epochs;
  watch watched{{}, 30s};
  slow_devices slow;
  call_desk calls{communicator_id{7}};
  std::set<device_id> come;
  watch::time_point now = watch::time_point{} + 1h;

  explicit watched_operation(proto::FailurePolicy policy = proto::SHRINK) {
    for (uint64_t id = 1; id <= 3; ++id) {
      rank_device x;
      x.metadata.mutable_deviceid()->set_value(id);
      x.metadata.mutable_minmemaddr()->set_value(id << 16);
      x.metadata.mutable_maxmemaddr()->set_value((id + 1) << 16);
      ranks.push_back(x);
      watched.add({id}, 0);
    }
    epochs.emplace(communicator_id{7}, policy, ranks);
    call();
    first().begin({1}, 3, 5'000);
  }

  operation& first() { return epochs->operations().in_flight().front(); }
  void call() {
    proto::CollectiveRequest request;
    request.mutable_collective()->set_count(4);
    for (auto& x : ranks)
      request.add_inputs(x.metadata.minmemaddr().value());
    auto made = make_operation(request, "ring", ranks);
    REQUIRE(made);
    made->called_ns = 4'000;
    epochs->operations().add(std::move(*made), 0);
  }
  void say(uint64_t device, const std::string& doing, std::vector<uint32_t> waits_for = {}, uint64_t sequence = 1) {
    proto::Progress x;
    x.set_device_id(device);
    x.set_epoch(1);
    x.set_sequence(sequence);
    x.set_doing(doing);
    for (auto rank : waits_for)
      x.add_waits_for(rank);
    watched.on_answer(x, now);
  }
  reported look(uint64_t unix_ns = 10'000) {
    return status_of({*epochs, watched, slow, calls,
                      [this](device_id x, sequence_number) { return come.count(x) != 0; }, now, unix_ns});
  }
};

} // namespace

TEST_CASE("communicator status: a rank waits for those it names, or for those that have not done what it has") {
  watched_operation x;
  x.say(1, "waiting for rank 2's block", {2});
  x.say(2, "finished, waiting for the other ranks");
  x.first().finished.insert({2});
  x.now += 70ms;
  auto status = x.look();
  REQUIRE(status.ranks_size() == 3);
  CHECK(status.ranks(0).waits_for_size() == 1);
  CHECK(status.ranks(0).waits_for(0) == 2);
  CHECK(status.ranks(0).latest_age_ns() == 70'000'000);
  CHECK(status.ranks(1).doing() == "finished");
  CHECK(status.ranks(1).waits_for_size() == 2); // 0 and 2
  CHECK(status.ranks(2).doing() == "no word yet");
  CHECK(!status.ranks(2).has_latest());
  CHECK(status.operations(0).ranks_done() == 1);
  CHECK(status.operations(0).age_ns() == 6'000);
}

TEST_CASE("communicator status: what a rank has said of an operation before is no word of this one") {
  watched_operation x;
  x.epochs->operations().take([](auto&) { return true; });
  x.call();
  x.first().begin({1}, 3, 5'000);
  x.say(1, "waiting for rank 2's block", {2}, 1);
  x.say(2, "busy with a copy", {}, 0); // of its stream, not of ours
  auto status = x.look();
  CHECK(status.operations(0).sequence() == 2);
  CHECK(status.ranks(0).doing() == "no word yet");
  CHECK(status.ranks(0).waits_for_size() == 0);
  CHECK(status.ranks(1).doing() == "busy with a copy");
}

TEST_CASE("communicator status: of a joint operation those count who have come to it") {
  watched_operation x;
  x.first().joint = true;
  x.come = {{1}, {3}};
  auto status = x.look();
  CHECK(status.operations(0).ranks_done() == 2);
  CHECK(status.ranks(0).waits_for_size() == 1);
  CHECK(status.ranks(0).waits_for(0) == 1);
  CHECK(status.ranks(1).waits_for_size() == 0);
  x.come = {{1}};
  CHECK(x.look().ranks(0).waits_for_size() == 2);
  x.say(3, "has come to it, waits for the others"); // beside 2, whom their process waits for
  auto word = x.watched.known({3}, x.now).latest;
  REQUIRE(word != nullptr);
  auto come = *word;
  come.set_has_come(true);
  x.watched.on_answer(come, x.now);
  status = x.look();
  CHECK(status.operations(0).ranks_done() == 2);
  CHECK(status.ranks(0).waits_for_size() == 1);
  CHECK(status.ranks(2).doing() == "has come to it, waits for the others");
}

TEST_CASE("communicator status: while members change it says who has stopped, who has not, and who is lost") {
  watched_operation x{proto::REPLACE};
  x.epochs->lost({2}, "killed");
  x.epochs->quiesced({1}, {2});
  auto status = x.look();
  CHECK(status.state() == reported::STOPPING);
  CHECK(status.epoch() == 1);
  CHECK(status.ranks(0).doing() == "no word yet");
  CHECK(status.ranks(1).lost());
  CHECK(status.ranks(1).doing() == "lost, waiting for a spare");
  CHECK(status.ranks(2).doing() == "has not stopped for the new epoch");
  x.epochs->quiesced({3}, {2});
  CHECK(x.look().state() == reported::REPLACING);
  x.epochs->abort("enough");
  CHECK(x.look().state() == reported::ENDING);
}

TEST_CASE("communicator status: of many operations the first are reported, and how many there are") {
  watched_operation x;
  for (int i = 0; i < 40; ++i)
    x.call();
  auto status = x.look();
  CHECK(status.operations_in_flight() == 41);
  CHECK(status.operations_size() == 16);
  CHECK(status.operations(0).phase() == reported::Operation::RUNNING);
  CHECK(status.operations(1).phase() == reported::Operation::QUEUED);
  x.first().state = operation::phase::decided;
  CHECK(x.look().operations(0).phase() == reported::Operation::DECIDED);
  CHECK(x.look(1'000).operations(0).age_ns() == 0); // a clock that was set back
}
