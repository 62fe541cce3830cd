// What a program hears of a coordinator that says no, or nothing.
#include "client/client.hpp"
#include "client/coordinator_link.hpp"

#include "messages/errc.hpp"
#include "tests/client/coordinated.hpp"

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace ringmaster::test;
using namespace std::chrono_literals;

namespace {

/// What the coordinator answers, and how many collectives it was asked for.
struct collectives_script {
  gpu_sim::GetCommStatusResponse status;
  uint64_t collectives = 0;
  std::vector<bool> stays; ///< Of what was asked for: whether it is to outlive the client.
};

proto::CollectiveResponse refuse_odd_count(collectives_script& said, const proto::CollectiveRequest& x) {
  proto::CollectiveResponse answer;
  answer.set_sequence(++said.collectives);
  if (x.collective().count() % 2 == 1)
    answer.set_error("no " + std::to_string(x.collective().count()));
  return answer;
}

/// Refuses collectives of an odd count, by their count, and answers the rest. One of none meets a communicator that has
/// just ended.
caf::behavior refuse_odd_counts(caf::event_based_actor*, std::shared_ptr<collectives_script> said) {
  return {[said](const proto::CollectiveRequest& x) -> caf::result<proto::CollectiveResponse> {
            if (x.collective().count() == 0)
              return caf::make_error(caf::sec::request_receiver_down);
            return refuse_odd_count(*said, x);
          },
          [said](const proto::CollectiveRequests& x) -> caf::result<proto::CollectiveResponses> {
            proto::CollectiveResponses answers;
            for (auto& call : x.calls()) {
              if (call.collective().count() == 0)
                return caf::make_error(caf::sec::request_receiver_down);
              *answers.add_answers() = refuse_odd_count(*said, call);
            }
            return answers;
          },
          [said](const gpu_sim::GetCommStatusRequest&) { return said->status; },
          [said](const proto::CommWaitRequest&) { return said->status; },
          [said](const gpu_sim::DeviceId&, const proto::AllocateRequest& x) {
            said->stays.push_back(x.outlives_client());
            return proto::AllocateResponse{};
          },
          [said](const gpu_sim::CommInitRequest& x) {
            said->stays.push_back(x.outlivesclient());
            return gpu_sim::CommInitResponse{};
          },
          [said](const proto::CommDeriveRequest& x) {
            said->stays.push_back(x.outlives_client());
            proto::CommDeriveResponse answer;
            answer.add_parts();
            return answer;
          }};
}

struct refusing_coordinator : coordinated<collectives_script> {
  refusing_coordinator() : coordinated{refuse_odd_counts} {}

  void begin(client& host, std::initializer_list<uint64_t> counts, size_t calls_max) {
    for (auto count : counts) {
      proto::CollectiveRequest request;
      request.mutable_collective()->set_count(count);
      host.begin_collective(request, calls_max);
    }
  }
};

} // namespace

TEST_CASE("client: the first error of pending calls is returned, however few may be pending") {
  for (size_t calls_max : {1, 2, 3, 100}) {
    CAPTURE(calls_max);
    refusing_coordinator x;
    client host{x.system, x.coordinator, 10s};
    x.begin(host, {2, 4, 5, 6, 7, 9}, calls_max);
    auto problem = host.finish_calls();
    CHECK(code_of(problem) == errc::refused);
    CHECK(render(problem) == "no 5");
    CHECK(x.said->collectives == 6);
    x.begin(host, {2, 4}, calls_max); // an error is returned once
    CHECK(!host.finish_calls());
    CHECK(!host.finish_calls());
  }
}

TEST_CASE("client: waiting says in time that an operation goes on, and a failed operation is an answer") {
  refusing_coordinator x;
  client host{x.system, x.coordinator, 10s};
  x.said->status.set_epoch(3);
  x.said->status.set_status(gpu_sim::IN_PROGRESS);
  x.said->status.set_error("rank 2 waits for rank 1");
  auto waited = host.wait(communicator_id{5}, 1s);
  REQUIRE(!waited);
  CHECK(code_of(waited.error()) == errc::timed_out);
  CHECK(render(waited.error()) == "rank 2 waits for rank 1");
  CHECK(host.status(communicator_id{5})->status() == gpu_sim::IN_PROGRESS); // only asked: an answer, too
  x.said->status.set_status(gpu_sim::FAILED);
  x.said->status.set_error("device 0x3 was lost");
  auto failed = host.wait(communicator_id{5}, 1s);
  REQUIRE_MESSAGE(failed, render(failed.error()));
  CHECK(failed->status() == gpu_sim::FAILED);
  CHECK(failed->error() == "device 0x3 was lost");
  x.said->status = {};
  x.said->status.set_error("there is no communicator 5");
  auto refused = host.wait(communicator_id{5}, 1s);
  REQUIRE(!refused);
  CHECK(code_of(refused.error()) == errc::refused);
  CHECK(render(refused.error()) == "there is no communicator 5");
}

TEST_CASE("client: a coordinator that is gone is a lost one") {
  refusing_coordinator x;
  client host{x.system, x.coordinator, 10s};
  caf::scoped_actor self{x.system};
  self->monitor(x.coordinator);
  self->send_exit(x.coordinator, caf::exit_reason::kill);
  self->receive([](const caf::down_msg&) {});
  auto status = host.status(communicator_id{5});
  REQUIRE(!status);
  CHECK(code_of(status.error()) == errc::device_lost);
  x.begin(host, {2}, 4);
  CHECK(code_of(host.finish_calls()) == errc::device_lost);
}

TEST_CASE("client: a communicator that ends before it takes a call is not taken for the coordinator") {
  refusing_coordinator x;
  client host{x.system, x.coordinator, 10s};
  x.said->status.set_error("communicator 5 has been destroyed");
  x.said->status.set_code(static_cast<uint32_t>(errc::unknown_communicator));
  proto::CollectiveRequest request;
  request.set_comm_id(5);
  auto refused = host.collective(request);
  REQUIRE(!refused);
  CHECK(code_of(refused.error()) == errc::unknown_communicator);
  CHECK(render(refused.error()) == "communicator 5 has been destroyed");
  x.begin(host, {2, 0, 4}, 4);
  auto begun = host.finish_calls();
  CHECK(code_of(begun) == errc::unknown_communicator);
  CHECK(render(begun) == "communicator 5 has been destroyed");
}

TEST_CASE("client: a wait may be as long as a time can be, or none") {
  refusing_coordinator x;
  client host{x.system, x.coordinator, 10s};
  x.said->status.set_epoch(1);
  x.said->status.set_status(gpu_sim::SUCCESS);
  CHECK(host.wait(communicator_id{5}, caf::timespan::max()));
  CHECK(host.wait(communicator_id{5}, -5ns));
}

TEST_CASE("client: set_persistent holds for all that is made from then on, and for nothing that was made before") {
  refusing_coordinator x;
  client host{x.system, x.coordinator, 10s};
  auto make_one_of_each = [&] {
    x.said->stays.clear();
    const communicator_id one{1};
    CHECK(host.allocate(device_id{1}, 64));
    CHECK(host.comm_init(2));
    CHECK(host.comm_init(2, proto::REPLACE));
    CHECK(host.comm_init({device_id{1}, device_id{2}}));
    CHECK(host.split(one, {0, 1}));
    CHECK(host.duplicate(one));
    CHECK(host.shrink(one, {1}));
    CHECK(host.grow(one, 1));
    CHECK(host.grow(one, std::vector{device_id{3}}));
    return x.said->stays;
  };
  CHECK(make_one_of_each() == std::vector<bool>(9, false));
  host.set_persistent(true);
  CHECK(make_one_of_each() == std::vector<bool>(9, true));
  host.set_persistent(false);
  CHECK(make_one_of_each() == std::vector<bool>(9, false));
}

TEST_CASE("client: a limit ends what is waited for, and leaves nothing of what was answered in time") {
  refusing_coordinator double_of_it;
  caf::scoped_actor self{double_of_it.system};
  coordinator_link link{self, double_of_it.coordinator};
  auto kept = std::make_shared<std::vector<caf::response_promise>>();
  auto never_answers = [](caf::event_based_actor* x, std::shared_ptr<std::vector<caf::response_promise>> promises) {
    return caf::behavior{[x, promises](int) {
      promises->push_back(x->make_response_promise());
      return promises->back();
    }};
  };
  auto silent = self->spawn(never_answers, kept);
  auto ends_at_its_limit = [&](caf::timespan limit) {
    auto never = self->request(silent, caf::infinite, 1);
    link.expect(never.id(), limit);
    caf::error problem;
    never.receive([] {}, [&](const caf::error& x) { problem = x; });
    return problem == caf::sec::request_timeout;
  };
  for (int i = 0; i < 100; ++i) {
    auto soon = self->request(double_of_it.coordinator, caf::infinite, gpu_sim::GetCommStatusRequest{});
    link.expect(soon.id(), 100ms);
    bool answered = false;
    soon.receive([&](const gpu_sim::GetCommStatusResponse&) { answered = true; }, [](const caf::error&) {});
    link.answered();
    CHECK(answered);
  }
  CHECK(ends_at_its_limit(1ms));   // sooner than the look that is due
  CHECK(ends_at_its_limit(120ms)); // behind all of theirs
  CHECK(self->mailbox().empty());
  self->send_exit(silent, caf::exit_reason::user_shutdown);
}
