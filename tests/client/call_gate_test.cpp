#include "client/call_gate.hpp"

#include "actors/calls/answers.hpp"
#include "tests/support/deterministic_system.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

using namespace ringmaster;
using namespace ringmaster::test;

namespace {

using counts = std::vector<uint64_t>;

/// What came to the double of a coordinator: the counts of each message's calls; and the promises of its answers.
struct came {
  std::vector<counts> messages;
  std::vector<caf::response_promise> promises;
};

caf::behavior keep_calls(caf::event_based_actor* self, std::shared_ptr<came> it) {
  auto keep = [=](counts calls) -> caf::result<caf::message> {
    it->messages.push_back(std::move(calls));
    it->promises.push_back(self->make_response_promise());
    return caf::delegated<caf::message>{};
  };
  return {[=](const proto::CollectiveRequest& x) { return keep({x.collective().count()}); },
          [=](const proto::CollectiveRequests& x) {
            counts calls;
            for (auto& call : x.calls())
              calls.push_back(call.collective().count());
            return keep(std::move(calls));
          }};
}

proto::CollectiveResponse answered_as(uint64_t sequence) {
  auto result = verdict<proto::CollectiveResponse>(caf::none);
  result.set_sequence(sequence);
  return result;
}

/// A client's side: it makes calls, each with a count of its own, and reads their answers.
struct gated_client : deterministic_system {
  gated_client()
    : host{sys.spawn(keep_calls, it)}, gate{std::in_place, self, caf::actor_cast<coordinator_actor>(host)} {}
  ~gated_client() {
    gate.reset();
    stop(host);
  }

  void call(uint64_t count, uint64_t communicator = 1, bool may_wait = true, uint64_t timeout_ns = 0) {
    proto::CollectiveRequest x;
    x.set_comm_id(communicator);
    x.mutable_collective()->set_count(count);
    x.set_answer_may_wait(may_wait);
    x.set_timeout_ns(timeout_ns);
    ids.push_back(self->new_request_id(caf::message_priority::normal).response_id());
    gate->call(ids.back(), std::move(x));
    deliver_all();
  }
  void calls(uint64_t first, uint64_t last) {
    for (auto count = first; count <= last; ++count)
      call(count);
  }
  /// The coordinator answers the message of this index.
  template <class Answer>
  void answer(size_t index, Answer what) {
    it->promises[index].deliver(std::move(what));
    deliver_all();
  }
  void answer_all(size_t index, uint64_t first_sequence) {
    proto::CollectiveResponses together;
    for (size_t i = 0; i < it->messages[index].size(); ++i)
      *together.add_answers() = answered_as(first_sequence + i);
    answer(index, std::move(together));
  }
  /// What the next call, in their order, was answered: "#" and its number, or why not.
  std::string next_answer() {
    using handle = caf::response_handle<caf::blocking_actor, caf::detail::type_list<proto::CollectiveResponse>, true>;
    if (self->mailbox().empty())
      return "none";
    std::string result;
    handle{ids[read++], self.ptr()}.receive(
      [&](const proto::CollectiveResponse& x) {
        result = x.success() ? "#" + std::to_string(x.sequence()) : x.error();
      },
      [&](const caf::error& problem) { result = "error: " + sys.render(problem); });
    return result;
  }

  std::shared_ptr<came> it = std::make_shared<came>();
  caf::actor host;
  std::optional<call_gate> gate;
  std::vector<caf::message_id> ids;
  size_t read = 0;
};

} // namespace

TEST_CASE(
  "call gate: a lone call goes at once, and what is called until it is answered goes as one message, in order") {
  gated_client x;
  x.calls(1, 4);
  CHECK(x.it->messages == std::vector<counts>{{1}});
  x.answer(0, answered_as(7));
  CHECK(x.it->messages == std::vector<counts>{{1}, {2, 3, 4}});
  x.calls(5, 5);
  CHECK(x.it->messages.size() == 2);
  x.answer_all(1, 8);
  CHECK(x.it->messages == std::vector<counts>{{1}, {2, 3, 4}, {5}});
  x.answer(2, answered_as(11));
  for (auto expected : {"#7", "#8", "#9", "#10", "#11", "none"})
    CHECK(x.next_answer() == expected);
  x.calls(6, 6); // no call is pending
  CHECK(x.it->messages.back() == counts{6});
}

TEST_CASE("call gate: what must not wait takes along what has gathered, and is the last of its message") {
  for (auto way : {"opened", "not to wait", "with a limit", "of another communicator"}) {
    CAPTURE(way);
    gated_client x;
    x.calls(1, 3);
    if (way == std::string{"opened"})
      x.gate->open(), x.deliver_all(), x.gate->open();
    else if (way == std::string{"not to wait"})
      x.call(4, 1, false);
    else if (way == std::string{"with a limit"})
      x.call(4, 1, true, 1'000'000);
    else
      x.call(4, 2);
    x.deliver_all();
    auto with_it = way == std::string{"not to wait"} || way == std::string{"with a limit"};
    CHECK(x.it->messages == std::vector<counts>{{1}, with_it ? counts{2, 3, 4} : counts{2, 3}});
    x.answer(0, answered_as(1)); // the second message is still under way
    CHECK(x.it->messages.size() == 2);
    x.answer_all(1, 2);
    CHECK(x.it->messages.size() == (way == std::string{"of another communicator"} ? 3 : 2));
  }
}

TEST_CASE("call gate: no more gather than it holds, whether or not anybody answers") {
  gated_client x;
  x.calls(1, 130);
  REQUIRE(x.it->messages.size() == 3);
  CHECK(x.it->messages[1].size() == 64);
  CHECK(x.it->messages[2].size() == 64);
  CHECK(x.it->messages[2].front() == 66);
  x.answer_all(2, 66); // its answers come first
  x.answer_all(1, 2);
  x.answer(0, answered_as(1));
  CHECK(x.it->messages.back() == counts{130});
  for (int i = 1; i <= 129; ++i)
    CHECK(x.next_answer() == "#" + std::to_string(i));
  CHECK(x.next_answer() == "none");
}

TEST_CASE("call gate: one that is refused among others is refused alone, and where all are, all hear why") {
  gated_client x;
  x.calls(1, 4);
  x.answer(0, answered_as(1));
  proto::CollectiveResponses together;
  *together.add_answers() = answered_as(2);
  *together.add_answers() = refusal<proto::CollectiveResponse>(errc::out_of_range, "no such address");
  *together.add_answers() = answered_as(3);
  x.answer(1, together);
  x.calls(5, 7);
  x.answer(2, answered_as(4));
  x.answer(3, refusal<proto::CollectiveResponses>(errc::unknown_communicator, "communicator 1 has been destroyed"));
  x.calls(8, 10);
  x.answer(4, answered_as(5));
  x.answer(5, caf::make_error(caf::sec::request_receiver_down));
  for (auto expected : {"#1", "#2", "no such address", "#3", "#4", "communicator 1 has been destroyed",
                        "communicator 1 has been destroyed", "#5"})
    CHECK(x.next_answer() == expected);
  CHECK(x.next_answer().find("request_receiver_down") != std::string::npos);
  CHECK(x.next_answer().find("request_receiver_down") != std::string::npos);
}

TEST_CASE("call gate: a coordinator that answers too few calls leaves none without an answer") {
  gated_client x;
  x.calls(1, 3);
  x.answer(0, answered_as(1));
  proto::CollectiveResponses together;
  *together.add_answers() = answered_as(2);
  x.answer(1, together);
  CHECK(x.next_answer() == "#1");
  CHECK(x.next_answer() == "#2");
  CHECK(x.next_answer() == "the coordinator answers 1 of 2 calls");
}

TEST_CASE("call gate: where the coordinator has ended each call hears so, while it is sent") {
  gated_client x;
  x.stop(x.host);
  x.calls(1, 3);
  for (int i = 1; i <= 3; ++i)
    CHECK(x.next_answer().find("error: ") == 0);
  CHECK(x.next_answer() == "none");
}

TEST_CASE("call gate: a client that is destroyed sends the collected calls, and gets no answers") {
  gated_client x;
  x.calls(1, 3);
  x.gate.reset();
  x.deliver_all();
  CHECK(x.it->messages == std::vector<counts>{{1}, {2, 3}});
  x.answer(0, answered_as(1));
  x.answer_all(1, 2);
  CHECK(x.next_answer() == "none");
}
