#include "actors/training/steps/attempt_teardown.hpp"

#include "runtime/memory/mapped_memory.hpp"

#include <fmt/format.h>

namespace ringmaster::training {

std::optional<std::string> attempt_teardown::awaited() const {
  if (handing_over_)
    return "the parts of the model of ranks that leave have not arrived";
  if (!gives_up_.empty())
    return fmt::format("the rank of {} has not given up its step", ringmaster::text_of(*gives_up_.begin()));
  return std::nullopt;
}

void attempt_teardown::attempt_started() {
  ensure(is_complete() && !handing_over_, "a step starts when every rank has given up the last attempt");
  communicators_open_ = true;
}

void attempt_teardown::start(const std::vector<device_id>& devices) {
  ensure(is_complete(), "an attempt is given up once");
  gives_up_ = {devices.begin(), devices.end()};
  answers_awaited_ = devices.size();
}

void attempt_teardown::answered() {
  ensure(answers_awaited_ > 0, "only awaited answers are counted");
  --answers_awaited_;
}

void attempt_teardown::coordinator_answered() {
  answered();
}

void attempt_teardown::close_communicators() {
  ensure(communicators_open_, "communicators are closed once");
  ++answers_awaited_;
}

void attempt_teardown::communicators_closed() {
  ensure(communicators_open_, "communicators are closed once");
  communicators_open_ = false;
  answered();
}

void attempt_teardown::start_handing_over() {
  ensure(is_complete() && !handing_over_, "ranks hand over after they have given up their attempt");
  handing_over_ = true;
}

std::string attempt_teardown::state_text() const {
  return fmt::format("{} answers and {} ranks awaited{}{}", answers_awaited_, gives_up_.size(),
                     communicators_open_ ? ", communicators open" : "", handing_over_ ? ", ranks hand over" : "");
}

} // namespace ringmaster::training
