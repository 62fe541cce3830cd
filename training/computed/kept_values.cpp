#include "training/computed/kept_values.hpp"

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"

#include <fmt/format.h>

namespace ringmaster::training {

caf::error kept_values::begin(uint64_t step) {
  if (step == step_ + 1 && !staged_.empty()) {
    kept_ = std::exchange(staged_, {});
    ++step_;
  } else {
    for (auto& [what, block] : restored_)
      kept_.erase(what);
  }
  restored_.clear();
  staged_.clear();
  check();
  if (step == step_)
    return caf::none;
  return make_error(errc::invalid_argument,
                    fmt::format("step {} cannot start: this rank has the model as it was before step {}", step, step_));
}

block_pointer kept_values::find(const kept_part& what) const {
  auto i = kept_.find(what);
  return i == kept_.end() ? nullptr : i->second;
}

void kept_values::stage(const kept_part& what, block_pointer x) {
  ensure(x != nullptr, "a step makes a part in a block");
  staged_[what] = std::move(x);
}

void kept_values::restore(const kept_part& what, block_pointer x) {
  ensure(x != nullptr, "a restored part is in a block");
  ensure(find(what) == nullptr, "only a part that is missing is restored");
  kept_[what] = restored_[what] = std::move(x);
}

void kept_values::replace(const kept_part& what, block_pointer x) {
  ensure(kept_.contains(what), "a part that moves is kept");
  ensure(staged_.empty(), "parts move before the step makes any");
  kept_[what] = std::move(x);
}

void kept_values::check() const {
  ensure(restored_.empty() && staged_.empty(), "a step starts with nothing of an earlier attempt");
}

void kept_values::forget(uint64_t step) {
  step_ = step;
  kept_.clear();
  staged_.clear();
  restored_.clear();
}

} // namespace ringmaster::training
