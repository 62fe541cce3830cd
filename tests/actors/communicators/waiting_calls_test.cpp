// Calls whose callers do not wait for the answers: what they gain while others are under way, and what they never lose.
#include "tests/support/rank_cluster.hpp"

#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace std::chrono_literals;

namespace {

using sums = std::vector<float>;

/// Makes calls one behind the other, and keeps what it is answered, in the order of the answers.
struct caller_state {
  std::vector<proto::CollectiveResponse> answers;
  std::optional<gpu_sim::CommInitResponse> made;
};

caf::behavior caller(caf::event_based_actor* self, coordinator_actor host, std::shared_ptr<caller_state> state) {
  auto failed = [](const caf::error& problem) { FAIL("no answer: ", render(problem)); };
  return {
    [=](const proto::CollectiveRequest& x) {
      self->request(host, caf::infinite, x)
        .then([=](const proto::CollectiveResponse& y) { state->answers.push_back(y); }, failed);
    },
    [=](const gpu_sim::CommInitRequest& x) {
      self->request(host, caf::infinite, x).then([=](const gpu_sim::CommInitResponse& y) { state->made = y; }, failed);
    },
  };
}

/// Four ranks. Rank r has (i + 1) * 2^r at place i, so that a sum says who has added to it.
struct burst : rank_cluster {
  static simulation_options options(uint64_t seed) {
    simulation_options result;
    result.seed = seed;
    result.devices = 4;
    result.share_memory = false;
    result.offer_memory = seed % 2 == 0;
    result.relays = seed % 3 == 0 ? 2 : 0;
    result.journaled = true;
    return result;
  }

  explicit burst(uint64_t seed) : rank_cluster{options(seed), 4} {
    for (uint32_t rank = 0; rank < 4; ++rank) {
      sums values(64);
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>((1 << rank) * (i + 1));
      fill(rank, 0, values);
    }
    who = cluster.sys.spawn(caller, cluster.host, said);
  }
  ~burst() { caf::anon_send_exit(who, caf::exit_reason::user_shutdown); }

  /// An all-reduce of two floats from `input` to `output`, places of every rank.
  proto::CollectiveRequest request(uint64_t input, uint64_t output, bool may_wait = true) const {
    proto::CollectiveRequest x;
    x.set_comm_id(comm.commid());
    x.mutable_collective()->set_algorithm("tree");
    x.mutable_collective()->set_datatype(proto::FLOAT32);
    x.mutable_collective()->set_count(2);
    x.set_answer_may_wait(may_wait);
    for (uint32_t rank = 0; rank < 4; ++rank) {
      x.add_inputs(address(rank, input));
      x.add_outputs(address(rank, output));
    }
    return x;
  }
  void call(const proto::CollectiveRequest& x) { caf::anon_send(who, x); }
  void calls(uint64_t number, bool may_wait = true) {
    for (uint64_t i = 0; i < number; ++i)
      call(request(2 * i, 64 + 2 * i, may_wait));
  }

  /// Until that number of calls has been answered. Returns the number of accepted ones, which are the first.
  uint64_t taken(size_t number) {
    cluster.run_until([&] { return said->answers.size() >= number; });
    uint64_t result = 0;
    for (auto& x : said->answers)
      result = std::max(result, x.sequence());
    return result;
  }
  void answered(size_t number) {
    CHECK(taken(number) == number);
    for (auto& x : said->answers)
      CHECK(x.error() == "");
  }
  std::string ended() { return cluster.wait(comm.commid()).error(); }
  template <class Request, class Response>
  void group() {
    Request request;
    request.set_commid(comm.commid());
    CHECK(cluster.template ask_coordinator<Response>(request).error() == "");
  }

  /// How many walks rank 1 has made.
  size_t walks() {
    auto records = cluster.history();
    return static_cast<size_t>(std::count_if(records.begin(), records.end(), [&](auto& x) {
      return x.has_rank_ended() && x.rank_ended().phase() == proto::RankReport::COMMITTED
             && x.rank_ended().device_id() == device(1);
    }));
  }
  static sums expected(uint64_t number, int mask = 15) {
    sums result;
    for (uint64_t i = 0; i < 2 * number; ++i)
      result.push_back(static_cast<float>(static_cast<uint64_t>(mask) * (i + 1)));
    return result;
  }
  void slow(caf::timespan delay) { cluster.inject(device(1), fault(proto::FaultRequest::SLOW, {}, delay)); }
  auto now() { return cluster.sys.clock().now(); }
  /// From now on an operation is under way, of which rank 1 takes `delay` for each message. Returns the time.
  auto keep_busy(caf::timespan delay) {
    slow(delay);
    calls(1);
    answered(1);
    return now();
  }

  std::shared_ptr<caller_state> said = std::make_shared<caller_state>();
  caf::actor who;
};

} // namespace

TEST_CASE("waiting calls: what is called while another operation runs is walked as one, and each is right") {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    CAPTURE(seed);
    burst x{seed};
    x.slow(1ms);
    x.calls(20);
    x.answered(20);
    CHECK(x.ended() == "");
    for (uint32_t rank = 0; rank < 4; ++rank)
      CHECK(x.read(rank, 64, 40) == burst::expected(20));
    CHECK(x.walks() <= 4); // alone, the first; two or three gather before it has left
    for (uint64_t i = 0; i < 20; ++i)
      CHECK(x.said->answers[i].sequence() == i + 1);
  }
}

TEST_CASE("waiting calls: a caller that waits for its answer has it at once, and its own walk") {
  burst x{1};
  x.slow(100ms);
  auto before = x.now();
  x.calls(5, false);
  x.answered(5);
  CHECK(x.now() == before);
  CHECK(x.ended() == "");
  CHECK(x.walks() == 5);
}

TEST_CASE("waiting calls: a later one that does not wait takes them along") {
  burst x{2};
  auto before = x.keep_busy(50ms);
  x.call(x.request(2, 66));
  x.run_messages();
  CHECK(x.said->answers.size() == 1);
  x.call(x.request(4, 68, false));
  x.answered(3);
  CHECK(x.now() == before);
  CHECK(x.ended() == "");
  CHECK(x.read(3, 64, 6) == burst::expected(3));
  CHECK(x.walks() == 3);
}

TEST_CASE("waiting calls: a later one that is refused, or waits in a group, is answered at once") {
  for (bool refused : {true, false}) {
    CAPTURE(refused);
    burst x{2};
    auto before = x.keep_busy(50ms);
    x.call(x.request(2, 66));
    auto more = x.request(4, 68, false);
    if (refused)
      more.set_outputs(3, UINT64_MAX - 4); // no address
    else
      x.group<gpu_sim::GroupStartRequest, gpu_sim::GroupStartResponse>();
    x.call(more);
    x.taken(3);
    CHECK(x.now() == before);
    CHECK(x.said->answers[2].success() == !refused);
    if (!refused)
      x.group<gpu_sim::GroupEndRequest, gpu_sim::GroupEndResponse>();
    CHECK(x.ended() == "");
  }
}

TEST_CASE("waiting calls: none waits for company that it cannot have") {
  burst x{2};
  auto before = x.keep_busy(50ms);
  x.call(x.request(2, 66));
  x.call(x.request(66, 68)); // of the other's result
  x.answered(3);
  CHECK(x.now() == before);
  CHECK(x.ended() == "");
  CHECK(x.walks() == 3);
}

TEST_CASE("waiting calls: they wait no longer than between two looks at the members") {
  burst x{3};
  auto before = x.keep_busy(5s);
  x.call(x.request(2, 66));
  x.answered(2);
  CHECK(x.now() - before <= suspicion::options{}.interval);
  CHECK(x.now() > before);
}

TEST_CASE("waiting calls: one that reads an earlier one's result sees it, and of two results the later one stays") {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    CAPTURE(seed);
    burst x{seed};
    x.slow(1ms);
    x.call(x.request(20, 90)); // it keeps the others waiting
    x.call(x.request(0, 64));
    x.call(x.request(64, 66)); // sums of the sums before
    x.call(x.request(2, 68));
    x.call(x.request(4, 68)); // over the one before
    x.call(x.request(6, 4));  // over what the one before reads
    x.answered(6);
    CHECK(x.ended() == "");
    CHECK(x.read(2, 64, 6) == sums{15, 30, 60, 120, 75, 90});
    CHECK(x.read(0, 4, 2) == sums{105, 120});
  }
}

TEST_CASE("waiting calls: one with a limit ends only its own operation") {
  burst x{4};
  x.slow(100ms);
  x.calls(1);
  auto limited = x.request(2, 66);
  limited.set_timeout_ns(250'000'000);
  x.call(limited);
  x.call(x.request(4, 68));
  x.answered(3);
  CHECK(contains(x.ended(), "operation #2 has not ended within its limit"));
  auto records = x.cluster.history();
  CHECK(
    std::count_if(records.begin(), records.end(),
                  [](auto& y) { return y.has_operation_ended() && y.operation_ended().status() == gpu_sim::FAILED; })
    == 1);
  CHECK(x.read(0, 68, 2) == sums{75, 90});
}

TEST_CASE("waiting calls: a rank that dies at any step leaves one group's sums, for all that are walked as one") {
  for (uint32_t step = 0; step <= 8; ++step)
    for (uint64_t seed = 1; seed <= 6; ++seed) {
      CAPTURE(step);
      CAPTURE(seed);
      burst x{seed};
      x.slow(1ms);
      x.cluster.inject(x.device(2), fault(proto::FaultRequest::KILL, step));
      x.calls(8);
      auto taken = x.taken(8);
      for (auto& answer : x.said->answers) // calls for ranks that were lost are refused
        CHECK((answer.sequence() != 0 || contains(answer.error(), "rank 2 (device 0x3) crashed: ")));
      CHECK(taken > 0);
      CHECK(x.ended() == "");
      for (uint64_t i = 0; i < taken; ++i) {
        auto found = x.read(0, 64 + 2 * i, 2);
        auto with = burst::expected(8), without = burst::expected(8, 11);
        CHECK((found == sums{with[2 * i], with[2 * i + 1]} || found == sums{without[2 * i], without[2 * i + 1]}));
        for (uint32_t rank : {1, 3})
          CHECK(x.read(rank, 64 + 2 * i, 2) == found);
      }
    }
}

TEST_CASE("waiting calls: an abort answers them, and they fail with its reason") {
  burst x{5};
  x.slow(5s);
  x.calls(4);
  x.run_messages();
  proto::CommAbortRequest abort;
  abort.set_comm_id(x.comm.commid());
  abort.set_reason("enough");
  CHECK(x.cluster.ask_coordinator<proto::CommAbortResponse>(abort).error() == "");
  x.answered(4);
  CHECK(contains(x.ended(), "enough"));
}

TEST_CASE("waiting calls: when their caller is gone his communicator ends, and its devices are free") {
  size_t unanswered = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    burst x{seed};
    proto::CommDestroyRequest destroy;
    destroy.set_comm_id(x.comm.commid());
    CHECK(x.cluster.ask_coordinator<proto::CommDestroyResponse>(destroy).error() == "");
    gpu_sim::CommInitRequest init;
    init.set_numdevices(4);
    caf::anon_send(x.who, init);
    x.cluster.run_until([&] { return x.said->made.has_value(); });
    x.comm = *x.said->made;
    x.slow(5s);
    x.calls(4);
    x.run_messages();
    unanswered += 4 - x.said->answers.size();
    caf::anon_send_exit(x.who, caf::exit_reason::kill);
    x.run_messages();
    x.cluster.run_until([&] {
      return x.cluster.init(3).error() == ""; // one may still be at work on what it was slow with
    });
  }
  CHECK(unanswered > 0);
}
