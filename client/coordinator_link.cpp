#include "client/coordinator_link.hpp"

#include "actors/scheduling/awake_clock.hpp"
#include "runtime/invariants/ensure.hpp"

#include <caf/attachable.hpp>
#include <caf/make_message.hpp>
#include <caf/sec.hpp>
#include <caf/send.hpp>

#include <mutex>
#include <optional>
#include <utility>

namespace ringmaster {

struct coordinator_link::shared_state {
  std::mutex mutex;
  caf::strong_actor_ptr self; ///< Null: the client was destroyed.
  std::optional<caf::message_id> expected;
  awake_clock::time_point limit;                                     ///< Of the expected answer.
  caf::error why;                                                    ///< The coordinator has ended.
  awake_clock::time_point looks_at = awake_clock::time_point::max(); ///< When the watch looks next.
  uint64_t look = 0;                                                 ///< Its number; an earlier one does not count.

  /// Under the mutex: the expected answer fails.
  void answer(const caf::error& problem) {
    if (auto id = std::exchange(expected, std::nullopt); id && self)
      self->enqueue(nullptr, *id, caf::make_message(problem), nullptr);
  }

  /// Under the mutex: the next look is for the present limit.
  uint64_t next_look() {
    looks_at = expected ? limit : awake_clock::time_point::max();
    return ++look;
  }
};

class coordinator_link::end_notice : public caf::attachable {
public:
  explicit end_notice(std::shared_ptr<shared_state> state) : state_(std::move(state)) {}

  void actor_exited(const caf::error& why, caf::execution_unit*) override {
    std::lock_guard guard{state_->mutex};
    state_->why = why ? why : caf::error{caf::exit_reason::user_shutdown};
    state_->answer(state_->why);
  }
  bool matches(const token& x) override { return x.subtype == token::anonymous && x.ptr == state_.get(); }

private:
  std::shared_ptr<shared_state> state_;
};

coordinator_link::coordinator_link(caf::scoped_actor& self, const coordinator_actor& coordinator)
  : state_(std::make_shared<shared_state>()), coordinator_(caf::actor_cast<caf::strong_actor_ptr>(coordinator)),
    watch_(self->system().spawn<caf::hidden>(&coordinator_link::watch_limits, state_)) {
  ensure(coordinator_ != nullptr, "a client has a coordinator");
  state_->self = self->ctrl();
  coordinator_->get()->attach(caf::attachable_ptr{new end_notice{state_}});
}

coordinator_link::~coordinator_link() {
  coordinator_->get()->detach({caf::attachable::token::anonymous, state_.get()});
  std::lock_guard guard{state_->mutex};
  ensure(state_->self != nullptr, "a link is destroyed once");
  state_->self = nullptr;
  caf::anon_send_exit(watch_, caf::exit_reason::user_shutdown);
}

void coordinator_link::expect(caf::message_id answer, caf::timespan limit) {
  std::lock_guard guard{state_->mutex};
  state_->expected = answer;
  state_->limit = awake_clock::now() + limit;
  if (state_->why)
    return state_->answer(state_->why);
  if (state_->limit < state_->looks_at)
    caf::anon_send(watch_, atom::resume_v, state_->next_look());
}

void coordinator_link::answered() {
  std::lock_guard guard{state_->mutex};
  state_->expected.reset();
}

caf::behavior coordinator_link::watch_limits(caf::event_based_actor* self, std::shared_ptr<shared_state> state) {
  return {[self, state](atom::resume, uint64_t number) {
    std::lock_guard guard{state->mutex};
    ensure(number <= state->look, "a look has a number that was given");
    if (number != state->look)
      return;
    auto now = awake_clock::now();
    if (state->expected && now >= state->limit)
      state->answer(caf::sec::request_timeout);
    auto next = state->next_look();
    if (state->expected)
      self->delayed_send(self, state->limit - now, atom::resume_v, next);
  }};
}

} // namespace ringmaster
