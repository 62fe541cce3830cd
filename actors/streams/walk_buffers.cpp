#include "actors/streams/walk_buffers.hpp"

#include "messages/errc.hpp"
#include "runtime/algorithms/registry.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/memory/mapped_memory.hpp"
#include "runtime/rank_order/rank_order.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace ringmaster {

caf::error walk_buffers::lay_out(const rank_plan& plan, std::shared_ptr<device_memory> memory) {
  ensure(!has_scratch() && plan.rank() < plan.world_size(),
         "a walk starts without scratch, and for a rank of its plan");
  plan_ = plan;
  memory_ = std::move(memory);
  element_bytes_ = size_of(plan.what().datatype());
  const auto request = plan.request();
  input_bytes_ = input_count(plan.what().kind(), request, plan.rank()) * element_bytes_;
  output_bytes_ = output_count(plan.what().kind(), request, plan.rank()) * element_bytes_;
  for (auto& side : {inputs(), packed_pieces(*plan, plan.rank(), buffer_side::output, output_bytes_)})
    for (auto& x : side)
      if (auto range = memory_->at(x.address, x.bytes); !range)
        return std::move(range.error());
  return caf::none;
}

caf::error walk_buffers::allocate(const schedule_run& run) {
  if (!run.empty() && wants_shadow())
    if (auto problem = reserve(shadow_, output_bytes_))
      return problem;
  if (auto problem = reserve(scratch_, run.scratch_count() * element_bytes_))
    return plan_->rank_order() ? no_room(problem, run) : problem;
  expected_ = plan_.fused() ? output_bytes_ : 0; // what is fused is small
  return caf::none;
}

caf::error walk_buffers::reserve(uint64_t& address, uint64_t bytes) {
  if (bytes == 0)
    return caf::none;
  auto range = memory_->allocate_scratch(bytes);
  if (!range)
    return std::move(range.error());
  address = *range;
  return caf::none;
}

/// Whether the output would destroy the input. In place, a gathering rank's own block is at its place already, unless
/// ranks were lost and the others have moved up.
bool walk_buffers::wants_shadow() const {
  if (plan_.fused())
    return true;
  const auto in = plan_.input_address(), out = plan_.output_address();
  if (!plan_->in_place() || in >= out + output_bytes_ || out >= in + input_bytes_)
    return false;
  const auto at = in_place(plan_.what().kind(), plan_.request(), plan_.rank());
  return replaces_input(plan_.what().kind()) || in - out != (at.input - at.output) * element_bytes_;
}

/// Contributions that are kept separate take much scratch; an algorithm in rank order needs the least.
caf::error walk_buffers::no_room(const caf::error& problem, const schedule_run& run) const {
  auto& what = plan_.what();
  auto text = fmt::format("{}; {} of {} in rank order by {} takes {} bytes of scratch on rank {}", render(problem),
                          name_of(what.kind()), name_of(what.datatype()), what.algorithm(),
                          run.scratch_count() * element_bytes_, plan_.rank());
  if (auto* least = first_in_rank_order(what.kind()))
    if (auto planned = plan_in_rank_order(what.kind(), least->name, plan_.request()))
      text += fmt::format(", by {} {}: take that, fewer elements at a time, or a larger device.memory-bytes",
                          least->name, planned->scratch_count * element_bytes_);
  return make_error(code_of(problem), text);
}

void walk_buffers::free() {
  for (auto address : {&shadow_, &scratch_, &staged_})
    if (*address != 0)
      memory_->free_scratch(std::exchange(*address, 0));
}

bool walk_buffers::expect_more() {
  constexpr uint64_t turn_bytes = 8u << 20; // the system clears them
  ensure(expected_ < output_bytes_, "memory is allocated up to the end of the output");
  const auto begin = expected_ - std::min(expected_, huge_pages::page_bytes); // a page may lie across two turns
  expected_ = std::min(expected_ + turn_bytes, output_bytes_);
  memory_->expect_bytes(*memory_->at(plan_.output_address() + begin, expected_ - begin));
  if (shadow_ != 0)
    memory_->expect_bytes(*memory_->at_runtime(shadow_ + begin, expected_ - begin));
  return expected_ < output_bytes_;
}

uint64_t walk_buffers::address_of(const block_range& range) const {
  const auto start = range.where == buffer::input     ? (staged_ != 0 ? staged_ : plan_.input_address())
                     : range.where == buffer::scratch ? scratch_
                     : shadow_ != 0                   ? shadow_
                                                      : plan_.output_address();
  return start + range.offset * element_bytes_;
}

std::byte* walk_buffers::bytes_at(const block_range& range) const {
  return memory_->at_runtime(address_of(range), bytes_of(range))->data(); // checked by lay_out
}

} // namespace ringmaster
