#include "planner/failures/host_lives.hpp"

#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <cmath>

namespace ringmaster::training {

host_lives::host_lives(uint32_t hosts, bool endless, host_life life, double repair_s, uint64_t seed)
  : scale_s_(life.mean_s / std::tgamma(1 + 1 / life.shape)), power_(1 / life.shape), repair_s_(repair_s),
    endless_(endless), numbers_(seed), next_(never_s) {
  for (uint32_t i = 0; i < hosts; ++i)
    idle_.push_back(draw());
  ensure(life.mean_s > 0 && life.shape > 0 && repair_s > 0, "hosts live, and repairs take time");
}

double host_lives::draw() {
  // The inverse of e^-(t/scale)^shape, of a number above 0 and up to 1; the mean is scale * gamma(1 + 1/shape).
  const auto uniform = (static_cast<double>(numbers_() >> 11) + 1) * 0x1p-53;
  return scale_s_ * std::pow(-std::log(uniform), power_);
}

void host_lives::find_next() {
  next_ = fail_at_.empty() ? never_s : std::ranges::min(fail_at_);
}

void host_lives::employ(uint32_t count) {
  // The host that started last stops; that is independent of how long it would have lasted.
  for (; fail_at_.size() > count; fail_at_.pop_back())
    idle_.push_back(fail_at_.back() - worked_s_);
  while (fail_at_.size() < count) {
    if (idle_.empty() && endless_)
      idle_.push_back(draw());
    ensure(!idle_.empty(), "no more hosts work than there are");
    fail_at_.push_back(worked_s_ + idle_.back());
    idle_.pop_back();
  }
  ensure(fail_at_.size() == count, "as many hosts work as were asked for");
  find_next();
}

void host_lives::fail(double now) {
  const auto at = std::ranges::find(fail_at_, next_);
  ensure(at != fail_at_.end(), "a host that fails works");
  ensure(returns_.empty() || returns_.back() <= now + repair_s_, "hosts come back in the order in which they failed");
  fail_at_.erase(at);
  returns_.push_back(now + repair_s_);
  find_next();
}

double host_lives::next_return() const noexcept {
  return returns_.empty() ? never_s : returns_.front();
}

void host_lives::take_back() {
  ensure(!returns_.empty(), "a host that comes back was down");
  returns_.pop_front();
  idle_.push_back(draw());
}

} // namespace ringmaster::training
