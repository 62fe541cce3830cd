// Calls of one communicator that come as one message: each is a call of its own.
#include "tests/support/rank_cluster.hpp"

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

/// Three ranks, each with 1, 2, 3, ... in its memory, so that a sum is three times the place's number.
struct three_callers : rank_cluster {
  static simulation_options options(uint64_t seed, proto::FailurePolicy policy) {
    simulation_options result;
    result.seed = seed;
    result.devices = 3;
    result.policy = policy;
    result.share_memory = seed % 2 == 0;
    result.relays = seed % 3 == 0 ? 2 : 0;
    result.journaled = true;
    return result;
  }

  explicit three_callers(uint64_t seed, proto::FailurePolicy policy = proto::SHRINK)
    : rank_cluster{options(seed, policy), 3} {
    std::vector<float> values(32);
    std::iota(values.begin(), values.end(), 1.0f);
    for (uint32_t rank = 0; rank < 3; ++rank)
      fill(rank, 0, values);
  }

  /// An all-reduce of one float from `input` to `output`, places of every rank.
  proto::CollectiveRequest& add(uint64_t input, uint64_t output) {
    auto& x = *together.add_calls();
    x.set_comm_id(comm.commid());
    x.mutable_collective()->set_algorithm("auto");
    x.mutable_collective()->set_datatype(proto::FLOAT32);
    x.mutable_collective()->set_count(1);
    for (uint32_t rank = 0; rank < 3; ++rank) {
      x.add_inputs(address(rank, input));
      x.add_outputs(address(rank, output));
    }
    return x;
  }
  proto::CollectiveResponses answers() { return cluster.ask_coordinator<proto::CollectiveResponses>(together); }
  std::string ended() { return cluster.wait(comm.commid()).error(); }

  proto::CollectiveRequests together;
};

} // namespace

TEST_CASE("calls together: they are numbered and run in their order, each reads what the one before has written") {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    CAPTURE(seed);
    three_callers x{seed};
    for (uint64_t i = 0; i < 4; ++i)
      x.add(i == 0 ? 1 : 40 + i - 1, 40 + i);
    auto answers = x.answers();
    CHECK(answers.error() == "");
    REQUIRE(answers.answers_size() == 4);
    for (int i = 0; i < 4; ++i)
      CHECK(answers.answers(i).sequence() == static_cast<uint64_t>(i) + 1);
    CHECK(x.ended() == "");
    CHECK(x.read(2, 40, 4) == std::vector<float>{6, 18, 54, 162});
  }
}

TEST_CASE("calls together: one that is refused leaves the others as they are") {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    CAPTURE(seed);
    three_callers x{seed};
    x.add(0, 40);
    x.add(1, 41).set_inputs(1, UINT64_MAX - 4); // no address
    x.add(2, 42);
    auto answers = x.answers();
    REQUIRE(answers.answers_size() == 3);
    CHECK(answers.answers(0).sequence() == 1);
    CHECK_FALSE(answers.answers(1).success());
    CHECK(answers.answers(1).code() == static_cast<uint32_t>(errc::out_of_range));
    CHECK(answers.answers(2).sequence() == 2);
    CHECK(x.ended() == "");
    CHECK(x.read(0, 40, 1) == std::vector<float>{3});
    CHECK(x.read(0, 42, 1) == std::vector<float>{9});
  }
}

TEST_CASE("calls together: the limit of one ends its operation alone") {
  three_callers x{1};
  x.cluster.inject(x.device(1), fault(proto::FaultRequest::SLOW, {}, std::chrono::milliseconds{100}));
  x.add(0, 40);
  x.add(1, 41).set_timeout_ns(50'000'000);
  x.add(2, 42);
  CHECK(x.answers().answers_size() == 3);
  CHECK(contains(x.ended(), "operation #2 has not ended within its limit"));
  CHECK(x.read(0, 40, 1) == std::vector<float>{3});
  CHECK(x.read(0, 42, 1) == std::vector<float>{9});
}

TEST_CASE("calls together: under replace each one's inputs are noted, and a spare gets them") {
  three_callers x{1, proto::REPLACE};
  x.add(0, 40);
  x.add(1, 41).set_outputs(2, 7); // refused
  x.add(2, 42);
  CHECK(x.answers().answers_size() == 3);
  CHECK(x.ended() == "");
  std::vector<uint64_t> noted;
  for (auto& record : x.cluster.history())
    if (record.has_input_checkpoint() && record.input_checkpoint().device_id() == x.device(0))
      noted.push_back(record.input_checkpoint().sequence());
  CHECK(noted == std::vector<uint64_t>{1, 2});
}

TEST_CASE("calls together: none at all, of several communicators, or of one that is unknown are refused as a whole") {
  three_callers x{2};
  auto refused = [&] {
    auto answer = x.answers();
    CHECK(answer.answers().empty());
    return answer.error();
  };
  CHECK(refused() == "CollectiveRequests has no call");
  x.add(0, 40);
  x.add(1, 41).set_comm_id(77);
  CHECK(refused() == "CollectiveRequests has calls of communicators 1 and 77, where all must be of one");
  x.together.mutable_calls(0)->set_comm_id(77);
  CHECK(contains(refused(), "77"));
  CHECK(x.read(0, 40, 1) == x.read(1, 40, 1)); // nothing ran
}
