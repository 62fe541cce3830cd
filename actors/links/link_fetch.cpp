#include "actors/links/link_fetch.hpp"

#include "runtime/invariants/ensure.hpp"

#include <utility>

namespace ringmaster {

link_fetch::link_fetch(const transfer_key& key, device_id device, const block_sink& sink, uint64_t bytes,
                       std::function<void()> on_end)
  : key_(key), device_(device), bytes_(bytes), unit_(static_cast<uint32_t>(sink.unit())), plain_(sink.is_plain()),
    sink_(sink), on_end_(std::move(on_end)) {}

void link_fetch::revoke() {
  std::function<void()> forgotten;
  std::lock_guard guard{mutex_};
  revoked_ = true;
  sink_ = {};
  std::swap(forgotten, on_end_); // destroyed outside of the lock: it may hold the last reference to other objects
}

link_fetch::outcome link_fetch::state() const {
  std::lock_guard guard{mutex_};
  return state_;
}

caf::error link_fetch::why() const {
  std::lock_guard guard{mutex_};
  return why_;
}

std::vector<byte_range> link_fetch::missing() const {
  std::lock_guard guard{mutex_};
  return missing_;
}

void link_fetch::end(outcome how, caf::error why) {
  ensure(how != outcome::running, "a fetch ends with an outcome");
  std::function<void()> tell;
  {
    std::lock_guard guard{mutex_};
    if (state_ != outcome::running)
      return;
    state_ = how;
    revoked_ = true; // missing bytes may come by another route now
    why_ = std::move(why);
    for (auto& x : parts)
      if (x.next < x.end)
        missing_.emplace_back(x.next, x.end);
    ensure(how != outcome::done || missing_.empty(), "a fetch that is done has all bytes");
    tell = std::exchange(on_end_, nullptr);
  }
  if (tell)
    tell();
}

} // namespace ringmaster
