#include "actors/streams/walk_reduction.hpp"

#include "runtime/invariants/ensure.hpp"

namespace ringmaster {

caf::error walk_reduction::prepare() {
  auto& what = plan().what();
  auto reduction = reducer::of(what.datatype(), what.op(), what.user_op());
  if (!reduction)
    return std::move(reduction.error());
  combine_.emplace(std::move(*reduction));
  // In rank order all inputs of an element are added at once, and no partial sum overflows.
  scale_ = reduces(what.kind()) && !plan()->rank_order() ? combine_->scale_before(plan().world_size()) : 1;
  return caf::none;
}

std::unique_ptr<route> walk_reduction::stage(const packed_piece& x) const {
  block_sink sink{buffers_.staged_at(x)};
  sink.datatype = plan().what().datatype();
  sink.scale = scale_;
  if (plan().has_factors())
    sink.factor = plan().factor();
  return make_own_route(buffers_.window_at(x.address, x.bytes), sink);
}

std::unique_ptr<route> walk_reduction::own_route(const step& todo) const {
  if (todo.what == action::copy)
    return make_own_route(buffers_.window_of(todo.source), sink_of(todo, is_unscaled(todo.source)));
  if (todo.what == action::reduce)
    return make_own_route(buffers_.window_of(todo.destination), sink_of(todo, false));
  ensure(todo.what == action::fold, "other steps are done with a peer");
  return make_fold({{buffers_.bytes_at(todo.source), buffers_.bytes_of(todo.source)},
                    {buffers_.bytes_at(todo.destination), buffers_.bytes_of(todo.destination)},
                    &*combine_,
                    todo.finish,
                    plan().world_size()});
}

bool walk_reduction::is_unscaled(const block_range& own) const {
  return scale_ != 1 && !plan().stages() && own.where == buffer::input;
}

/// The inputs of all ranks of a reduction have one size.
bool walk_reduction::is_unscaled(uint32_t peer, const device_window& its) const {
  if (scale_ == 1 || plan().stages())
    return false;
  const auto input = plan()->input_addresses(static_cast<int>(peer));
  return its.address >= input && its.address < input + buffers_.input_bytes();
}

block_sink walk_reduction::sink_of(const step& todo, const device_window& its) const {
  return sink_of(todo, is_unscaled(todo.peer, its));
}

block_sink walk_reduction::sink_of(const step& todo, bool unscaled) const {
  block_sink result{buffers_.bytes_at(todo.destination), nullptr, &*combine_};
  result.datatype = plan().what().datatype();
  result.scale = unscaled ? scale_ : 1;
  if (todo.what == action::recv_reduce || todo.what == action::reduce) {
    result.operand = buffers_.bytes_at(todo.source);
    result.operand_scale = is_unscaled(todo.source) ? scale_ : 1;
  }
  return result;
}

void walk_reduction::finish(const step& todo) const {
  if (!todo.finish || todo.what == action::fold) // a fold finishes before it rounds
    return;
  auto* bytes = buffers_.bytes_at(todo.destination);
  if (scale_ != 1)
    combine_->finish_scaled(plan().world_size(), bytes, todo.destination.count);
  else
    combine_->finish(plan().world_size(), bytes, todo.destination.count);
}

} // namespace ringmaster
