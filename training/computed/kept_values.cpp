#include "training/computed/kept_values.hpp"

#include "messages/errc.hpp"

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
  if (step == step_)
    return caf::none;
  return make_error(errc::invalid_argument,
                    fmt::format("step {} cannot begin: what is here is from the beginning of step {}", step, step_));
}

block_pointer kept_values::find(const kept_part& what) const {
  auto i = kept_.find(what);
  return i == kept_.end() ? nullptr : i->second;
}

void kept_values::forget(uint64_t step) {
  step_ = step;
  kept_.clear();
  staged_.clear();
  restored_.clear();
}

} // namespace ringmaster::training
