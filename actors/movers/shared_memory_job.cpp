#include "actors/movers/shared_memory_job.hpp"

#include "actors/calls/spin.hpp"
#include "runtime/invariants/ensure.hpp"

#include <caf/send.hpp>

#include <algorithm>

namespace ringmaster {

shared_memory_job::shared_memory_job(shared_memory_operation operation, uint64_t slice_bytes,
                                     std::vector<std::shared_ptr<mapped_memory>> memories, uint32_t workers,
                                     communicator_actor owner, uint64_t number)
  : execution_(std::move(operation), slice_bytes), memories_(std::move(memories)), shares_(workers),
    owner_(std::move(owner)), number_(number) {
  ensure(workers > 0, "the owner is a worker");
  for (uint32_t i = 0; i < workers; ++i) {
    shares_[i].next = static_cast<uint32_t>(uint64_t{slices()} * i / workers);
    shares_[i].end = static_cast<uint32_t>(uint64_t{slices()} * (i + 1) / workers);
  }
}

bool shared_memory_job::has_slices() const noexcept {
  return std::ranges::any_of(shares_, [](auto& its) { return its.next < its.end; });
}

bool shared_memory_job::move_slice(uint32_t worker) noexcept {
  for (uint32_t i = 0; i < shares_.size(); ++i) {
    auto& its = shares_[(worker + i) % shares_.size()];
    if (its.next >= its.end) // checked first: each increment counts, and must not overflow
      continue;
    auto slice = its.next++;
    if (slice >= its.end)
      continue;
    execution_.run(slice);
    const auto moved = ++moved_;
    ensure(moved <= slices(), "a slice is moved once");
    if (moved == slices() && owner_waits_)
      caf::anon_send(owner_, atom::resume_v, number_);
    return true;
  }
  return false;
}

bool shared_memory_job::wait() {
  constexpr auto limit = std::chrono::microseconds{50};
  auto all_moved = [this] { return moved_ == slices(); };
  if (spin_until(all_moved, limit))
    return true;
  owner_waits_ = true; // the worker that moves the last slice sees this, or has moved it before the next line
  return all_moved();
}

} // namespace ringmaster
