#include "gateway/course/call_registry.hpp"

#include "gateway/course/course_call.hpp"
#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>

namespace ringmaster::gateway {

caf::expected<call_registry::ticket_pointer> call_registry::admit() {
  std::lock_guard guard{mutex_};
  if (closed_)
    return make_error(errc::unreachable, "the gateway stops");
  if (calls_ >= calls_max_)
    return make_error(errc::too_many,
                      fmt::format("{} calls are under way at this address, its limit (calls-max)", calls_max_));
  ++calls_;
  return std::make_shared<ticket>(shared_from_this());
}

call_registry::ticket::~ticket() {
  std::lock_guard guard{owner_->mutex_};
  ensure(owner_->calls_ > 0 && owner_->bytes_ >= bytes_, "a ticket that ends was counted");
  --owner_->calls_;
  owner_->bytes_ -= bytes_;
}

caf::error call_registry::ticket::hold(uint64_t bytes) {
  std::lock_guard guard{owner_->mutex_};
  const auto others = owner_->bytes_ - bytes_;
  if (bytes > owner_->bytes_max_ - others)
    return make_error(errc::too_many,
                      fmt::format("messages of {} are under way at this address, and {} more exceed "
                                  "its limit of {}: try again later",
                                  bytes_text(others), bytes_text(bytes), bytes_text(owner_->bytes_max_)));
  owner_->bytes_ = others + bytes;
  bytes_ = bytes;
  return caf::none;
}

void call_registry::add(course_call* call) {
  std::lock_guard guard{mutex_};
  if (!closed_)
    pending_.insert(call);
}

void call_registry::remove(course_call* call) {
  std::lock_guard guard{mutex_};
  pending_.erase(call);
}

void call_registry::close() {
  std::lock_guard guard{mutex_};
  closed_ = true;
  for (auto* call : pending_)
    call->fail(make_error(errc::unreachable, "the gateway stops"));
  pending_.clear();
}

} // namespace ringmaster::gateway
