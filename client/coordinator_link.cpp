#include "client/coordinator_link.hpp"

#include <caf/attachable.hpp>
#include <caf/make_message.hpp>

#include <mutex>
#include <optional>
#include <utility>

namespace ringmaster {

struct coordinator_link::shared_state {
  std::mutex mutex;
  caf::strong_actor_ptr self; ///< Null: the client is gone.
  std::optional<caf::message_id> expected;
  caf::error why; ///< The coordinator has ended.

  /// Under the mutex: what is waited for does not come.
  void answer() {
    if (auto id = std::exchange(expected, std::nullopt); id && self)
      self->enqueue(nullptr, *id, caf::make_message(why), nullptr);
  }
};

class coordinator_link::end_notice : public caf::attachable {
public:
  explicit end_notice(std::shared_ptr<shared_state> state) : state_(std::move(state)) {}

  void actor_exited(const caf::error& why, caf::execution_unit*) override {
    std::lock_guard guard{state_->mutex};
    state_->why = why ? why : caf::error{caf::exit_reason::user_shutdown};
    state_->answer();
  }
  bool matches(const token& x) override { return x.subtype == token::anonymous && x.ptr == state_.get(); }

private:
  std::shared_ptr<shared_state> state_;
};

coordinator_link::coordinator_link(caf::scoped_actor& self, const coordinator_actor& coordinator)
  : state_(std::make_shared<shared_state>()), coordinator_(caf::actor_cast<caf::strong_actor_ptr>(coordinator)) {
  state_->self = self->ctrl();
  coordinator_->get()->attach(caf::attachable_ptr{new end_notice{state_}});
}

coordinator_link::~coordinator_link() {
  coordinator_->get()->detach({caf::attachable::token::anonymous, state_.get()});
  std::lock_guard guard{state_->mutex};
  state_->self = nullptr;
}

void coordinator_link::expect(caf::message_id answer) {
  std::lock_guard guard{state_->mutex};
  state_->expected = answer;
  if (state_->why)
    state_->answer();
}

} // namespace ringmaster
