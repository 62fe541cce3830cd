#include "client/call_gate.hpp"

#include "actors/calls/answers.hpp"
#include "runtime/invariants/ensure.hpp"

#include <caf/make_actor.hpp>
#include <caf/monitorable_actor.hpp>

#include <fmt/format.h>

#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace ringmaster {

/// Has no mailbox: the thread that delivers an answer of the coordinator passes it on, and sends the calls that were
/// collected meanwhile. The mutex is recursive: a coordinator of this process that has ended answers within the call.
class call_gate::doorkeeper : public caf::monitorable_actor {
public:
  doorkeeper(caf::actor_config& cfg, caf::strong_actor_ptr client, caf::strong_actor_ptr coordinator)
    : caf::monitorable_actor(cfg), client_(std::move(client)), coordinator_(std::move(coordinator)) {}

  const char* name() const override { return "call_gate"; }

  void call(caf::message_id answer, proto::CollectiveRequest request) {
    std::lock_guard guard{mutex_};
    ensure(client_ != nullptr, "a gate that is closed takes no calls");
    if (!gathered_.empty() && gathered_.front().request.comm_id() != request.comm_id())
      send_gathered();                                                      // in the order of the calls
    bool may_wait = request.answer_may_wait() && request.timeout_ns() == 0; // its time starts when it arrives
    gathered_.push_back({answer, std::move(request)});
    ensure(gathered_.front().request.comm_id() == gathered_.back().request.comm_id(),
           "collected calls are of one communicator");
    ensure(gathered_.size() <= calls_max, "collected calls fit one message");
    if (under_way_.empty() || !may_wait || gathered_.size() >= calls_max)
      send_gathered();
  }

  void open() {
    std::lock_guard guard{mutex_};
    send_gathered();
  }

  void close() {
    {
      std::lock_guard guard{mutex_};
      ensure(client_ != nullptr, "a gate is closed once");
      send_gathered();
      client_ = nullptr;
      coordinator_ = nullptr;
    }
    cleanup(caf::exit_reason::user_shutdown, nullptr);
  }

  void enqueue(caf::mailbox_element_ptr x, caf::execution_unit* context) override {
    std::lock_guard guard{mutex_};
    auto asked = under_way_.extract(x->mid);
    if (!asked)
      return; // nothing else concerns it
    ensure(!asked.mapped().empty(), "a request was sent for at least one call");
    hand_out(asked.mapped(), x->move_content_to_message(), context);
    if (under_way_.empty())
      send_gathered();
  }

private:
  static constexpr size_t calls_max = 64; ///< Of one message.

  using answer_ids = std::vector<caf::message_id>;
  struct call_to_come {
    caf::message_id answer;
    proto::CollectiveRequest request;
  };

  // Under the mutex:

  void send_gathered() {
    if (gathered_.empty() || !coordinator_)
      return;
    auto calls = std::exchange(gathered_, {});
    latest_ = caf::make_message_id(++requests_);
    auto& answers = under_way_[latest_.response_id()];
    ensure(answers.empty(), "each request has its own id");
    for (auto& x : calls)
      answers.push_back(x.answer);
    if (calls.size() == 1)
      return send(std::move(calls.front().request));
    proto::CollectiveRequests together;
    for (auto& x : calls)
      *together.add_calls() = std::move(x.request);
    send(std::move(together));
  }

  template <class Request>
  void send(Request request) {
    coordinator_->enqueue(ctrl(), latest_, caf::make_message(std::move(request)), nullptr);
  }

  void hand_out(const answer_ids& whose, caf::message what, caf::execution_unit* context) {
    if (!client_)
      return;
    if (whose.size() == 1 || !what.match_elements<proto::CollectiveResponses>()) { // an error is that of all calls
      for (auto& id : whose)
        client_->enqueue(nullptr, id, what, context);
      return;
    }
    auto& together = what.get_as<proto::CollectiveResponses>(0);
    for (size_t i = 0; i < whose.size(); ++i)
      client_->enqueue(nullptr, whose[i], caf::make_message(answer_of(together, i, whose.size())), context);
  }

  static proto::CollectiveResponse answer_of(const proto::CollectiveResponses& together, size_t index, size_t calls) {
    if (auto problem = error_in(together))
      return refusal<proto::CollectiveResponse>(problem);
    if (static_cast<int>(index) < together.answers_size())
      return together.answers(static_cast<int>(index));
    return refusal<proto::CollectiveResponse>(errc::corrupt, fmt::format("the coordinator answers {} of {} calls",
                                                                         together.answers_size(), calls));
  }

  std::recursive_mutex mutex_;
  caf::strong_actor_ptr client_, coordinator_; ///< Null: the client was destroyed.
  std::vector<call_to_come> gathered_;         ///< Of one communicator.
  std::map<caf::message_id, answer_ids> under_way_;
  uint64_t requests_ = 0;
  caf::message_id latest_; ///< Request.
};

call_gate::call_gate(caf::scoped_actor& client, const coordinator_actor& coordinator) {
  auto& system = client->system();
  caf::actor_config config;
  keeper_ = caf::make_actor<doorkeeper, caf::strong_actor_ptr>(system.next_actor_id(), system.node(), &system, config,
                                                               caf::strong_actor_ptr{client->ctrl()},
                                                               caf::actor_cast<caf::strong_actor_ptr>(coordinator));
}

call_gate::~call_gate() {
  keeper().close();
}

call_gate::doorkeeper& call_gate::keeper() const {
  return *static_cast<doorkeeper*>(keeper_->get());
}

void call_gate::call(caf::message_id answer, proto::CollectiveRequest request) {
  keeper().call(answer, std::move(request));
}

void call_gate::open() {
  keeper().open();
}

} // namespace ringmaster
