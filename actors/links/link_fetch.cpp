#include "actors/links/link_fetch.hpp"

#include <utility>

namespace ringmaster {

link_fetch::link_fetch(const transfer_key& key, device_id device, const block_sink& sink, uint64_t bytes,
                       std::function<void()> told)
  : key_(key), device_(device), bytes_(bytes), unit_(static_cast<uint32_t>(sink.unit())), plain_(sink.is_plain()),
    sink_(sink), settings_(std::move(told)) {}

void link_fetch::revoke() {
  std::function<void()> forgotten;
  std::lock_guard guard{mutex_};
  revoked_ = true;
  sink_ = {};
  std::swap(forgotten, settings_); // what it holds may end by it: outside of the lock
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
  std::function<void()> tell;
  {
    std::lock_guard guard{mutex_};
    if (state_ != outcome::running)
      return;
    state_ = how;
    revoked_ = true; // what is missing may come by another way now
    why_ = std::move(why);
    for (auto& x : parts)
      if (x.next < x.end)
        missing_.emplace_back(x.next, x.end);
    tell = std::exchange(settings_, nullptr);
  }
  if (tell)
    tell();
}

} // namespace ringmaster
