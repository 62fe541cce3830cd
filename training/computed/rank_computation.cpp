#include "training/computed/rank_computation.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"
#include "training/computed/free_memory.hpp"
#include "training/computed/model_parts.hpp"
#include "training/language/collective_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace ringmaster::training {

namespace {

template <class T>
void add_as(std::byte* sum, const std::byte* more, uint64_t elements) {
  auto* to = reinterpret_cast<T*>(sum);
  auto* from = reinterpret_cast<const T*>(more);
  for (uint64_t i = 0; i < elements; ++i)
    to[i] += from[i];
}

} // namespace

caf::error rank_computation::begin_step(uint64_t step, const step_world& world) {
  ensure(world.ranks > 0, "a step has ranks");
  world_ = world;
  losses_ = {};
  strays_at_ = no_layer;
  const bool again = step == kept_.step();
  RETURN_ERROR(kept_.begin(step));
  return again ? pack() : caf::none;
}

caf::error rank_computation::pack() {
  std::vector<std::pair<kept_part, std::vector<std::byte>>> all;
  for (auto& [what, block] : kept_.kept()) {
    all.emplace_back(what, std::vector<std::byte>{block->data, block->data + block->bytes});
    kept_.replace(what, nullptr);
  }
  for (auto& [what, bytes] : all) {
    TRY(room, store_.make(bytes.size(), bytes.size(), true));
    std::memcpy((*room)->data, bytes.data(), bytes.size());
    kept_.replace(what, std::move(*room));
  }
  return caf::none;
}

caf::expected<block_pointer> rank_computation::room_for(const value_tag& what, uint64_t used, bool first) {
  // Blocks of a whole that is scattered or gathered have the same length: up to one element a rank more than it has.
  const auto spare = std::max<uint64_t>(64, world_.ranks) * training::bytes_of(job_.as);
  const bool stays = first || what.kind == value_kind::optimizer_state
                     || (what.kind == value_kind::weight && kept_.find(part_of(what)) != nullptr);
  auto made = store_.make(used + spare, used, stays);
  if (made)
    return made;
  const auto& layers = job_.layers;
  return make_error(
    errc::out_of_memory,
    fmt::format("{} bytes for the {} ({}) do not fit: {} bytes in use; {}. There would be more {}", used, text_of(what),
                what.layer < layers.size() ? layers[what.layer]->name() : "what the last layer gives",
                store_.bytes_used(), render(made.error()), memory_advice(job_, world_, of_activation(what.kind))));
}

caf::expected<block_pointer> rank_computation::own(uint64_t token, const value_tag& what) {
  auto& held = store_.at(token);
  ensure(held != nullptr, "a value that is changed has a block");
  if (held.use_count() == 1)
    return held;
  auto copy = room_for(what);
  if (!copy)
    return copy;
  std::memcpy((*copy)->data, held->data, held->bytes);
  store_.replace(token, *copy);
  return copy;
}

caf::error rank_computation::compute(pending& x) {
  ensure(!x.ended, "an operation is computed once");
  switch (x.what) {
    case op::load_weights: return load(x);
    case op::input: return input(x);
    case op::forward: return forward(x);
    case op::backward:
    case op::backward_input:
    case op::backward_weight: return backward(x);
    case op::keys:
    case op::attend:
    case op::attend_backward: return invalid("these layers have no attention to share");
    case op::loss: return loss(x);
    case op::add: return add(x);
    case op::slice: return slice(x);
    case op::update: return update(x);
    case op::finish: return finish(x);
    case op::offload:
    case op::fetch: return move(x);
    default: return needs_others(x) ? invalid("it needs other ranks") : collect_own(x);
  }
}

// -- what is kept --

std::vector<kept_part> rank_computation::missing(const pending& x) const {
  std::vector<kept_part> result;
  for (size_t i = 0; x.what == op::load_weights && kept_.step() > 0 && i < x.results.size(); ++i) {
    const auto wanted = part_of(x.results[i]);
    if (kept_.find(wanted) == nullptr && elements(job_, x.results[i]) > 0)
      result.push_back(wanted);
  }
  return result;
}

std::optional<std::span<const std::byte>> rank_computation::part(uint64_t step, const kept_part& what) const {
  const auto& all = step == kept_.step() ? kept_.kept() : kept_.made();
  auto found = all.find(what);
  if (step > kept_.step() + 1 || step < kept_.step() || found == all.end())
    return std::nullopt;
  return std::span{found->second->data, bytes_of(tag_of(what))};
}

caf::expected<block_pointer> rank_computation::room_for(const kept_part& what) {
  return room_for(tag_of(what), bytes_of(tag_of(what)), true);
}

caf::error rank_computation::load(pending& x) {
  const auto& of = *job_.layers[x.argument.layer];
  if (!x.argument.tensor.whole() && (x.argument.has == form::columns) != of.makes_columns())
    return invalid(fmt::format("{} {} cut by the columns of its output", of.name(),
                               of.makes_columns() ? "is" : "is not"));
  for (size_t i = 0; i < x.results.size(); ++i) {
    const auto& tag = x.results[i];
    auto found = kept_.find(part_of(tag));
    if (found == nullptr) {
      TRY(made, room_for(tag, bytes_of(tag), true));
      found = std::move(*made);
      std::memset(found->data, 0, found->bytes);
      if (tag.kind == value_kind::weight)
        set_first_weights(job_, tag.layer, tag.tensor, tag.part, found->data);
      kept_.restore(part_of(tag), found);
    }
    x.memory[i] = store_.hold(std::move(found));
  }
  return caf::none;
}

caf::error rank_computation::update(pending& x) {
  const auto state_tag = value_tag{.kind = value_kind::optimizer_state,
                                   .layer = x.argument.layer,
                                   .part = x.argument.part,
                                   .tensor = x.argument.tensor};
  const auto old_w = store_.at(x.memory[0]), old_state = store_.at(x.memory[1]);
  auto w = room_for(x.argument), state = room_for(state_tag); // the step before keeps what there was
  if (!w || !state)
    return w ? state.error() : w.error();
  update_weights(job_, x.argument, kept_.step() + 1, {old_w->data, old_state->data}, (*w)->data, (*state)->data,
                 data(x, 2));
  store_.replace(x.memory[0], *w);
  store_.replace(x.memory[1], *state);
  kept_.stage(part_of(state_tag), *state);
  return caf::none;
}

caf::error rank_computation::finish(pending& x) {
  kept_.stage(part_of(x.argument), store_.at(x.memory[0]));
  return caf::none;
}

// -- values --

caf::error rank_computation::add(pending& x) {
  if (x.memory[0] == 0) // the sum was empty, and is the value itself now
    return caf::none;
  TRY(sum, own(x.memory[0], x.argument));
  if (job_.as == precision::float32)
    add_as<float>((*sum)->data, data(x, 1), elements(job_, x.argument));
  else
    add_as<double>((*sum)->data, data(x, 1), elements(job_, x.argument));
  return caf::none;
}

caf::error rank_computation::slice(pending& x) {
  TRY(room, room_for(x.results[0]));
  if (of_activation(x.argument.kind) && x.results[0].has == form::columns) {
    column_shards{job_, x.argument, x.results[0].part.count}.take(x.results[0].part.index, data(x, 0), (*room)->data);
    x.memory[0] = store_.hold(std::move(*room));
    return caf::none;
  }
  const auto bytes = bytes_of(x.results[0]), begin = bytes * x.results[0].part.index, all = bytes_of(x.argument);
  const auto there = begin < all ? std::min(bytes, all - begin) : 0;
  std::memcpy((*room)->data, data(x, 0) + std::min(begin, all), there);
  std::memset((*room)->data + there, 0, bytes - there);
  x.memory[0] = store_.hold(std::move(*room));
  return caf::none;
}

caf::error rank_computation::move(pending& x) {
  const auto& from = store_.at(x.memory[0]);
  block_pointer to;
  if (x.what == op::offload) {
    to = store_.make_on_host(from->bytes);
  } else if (auto room = room_for(x.results[0])) {
    to = std::move(*room);
  } else {
    return room.error();
  }
  ensure(from != nullptr && to != nullptr, "a value that moves has memory on both sides");
  std::memcpy(to->data, from->data, std::min(from->bytes, to->bytes));
  x.memory[0] = store_.hold(std::move(to));
  return caf::none;
}

// -- communication --

caf::expected<rank_computation::transfer> rank_computation::prepare(const pending& x) {
  ensure(!x.ended, "a communication is prepared before it ends");
  const auto shows = x.what != op::receive && (x.what != op::broadcast || x.peer == x.rank);
  transfer result;
  if (shows)
    result.count = count_of(job_, x);
  if (shows && x.what != op::all_reduce)
    result.input = store_.at(x.memory[0]);
  switch (x.what) {
    case op::all_reduce: {
      TRY(own_block, own(x.memory[0], x.argument));
      result.input = result.output = std::move(*own_block);
      if (x.argument.kind == value_kind::weight_gradient && x.argument.has == form::summand) {
        result.count = job_.layers[x.argument.layer]->replicated();
        result.offset = bytes_of(x.argument) - result.count * training::bytes_of(job_.as);
      }
      return result;
    }
    case op::reduce_scatter:
    case op::all_gather: {
      if (of_activation(x.argument.kind) && scattered(x).has == form::columns)
        return prepare_columns(x);
      TRY(room, room_for(x.what == op::all_gather ? gathered(x) : scattered(x)));
      result.output = std::move(*room);
      return result;
    }
    case op::broadcast: result.output = result.input; return result;
    case op::send:
    case op::receive: return result;
    default: return invalid("these layers have no positions to be exchanged for heads");
  }
}

caf::expected<rank_computation::transfer> rank_computation::prepare_columns(const pending& x) {
  ensure(x.among.count > 0, "a collective has ranks");
  const column_shards cut{job_, x.argument, x.among.count};
  transfer result;
  result.count = count_of(job_, x);
  result.input = store_.at(x.memory[0]);
  if (x.what == op::reduce_scatter) {
    TRY(packed, room_for(x.argument, cut.bytes_each() * cut.count));
    for (uint32_t i = 0; i < cut.count; ++i)
      cut.take(i, result.input->data, (*packed)->data + i * cut.bytes_each());
    result.input = std::move(*packed);
  }
  TRY(room, x.what == op::all_gather ? room_for(gathered(x), cut.bytes_each() * cut.count) : room_for(scattered(x)));
  result.output = std::move(*room);
  return result;
}

void rank_computation::complete(pending& x, block_pointer result) {
  if (x.what == op::all_gather && of_activation(x.argument.kind) && x.argument.has == form::columns) {
    const column_shards cut{job_, x.argument, x.among.count};
    ensure(result != nullptr && result->bytes >= cut.bytes_each() * cut.count, "gathered shards fit in their block");
    const std::vector<std::byte> shards{result->data, result->data + cut.bytes_each() * cut.count};
    for (uint32_t i = 0; i < cut.count; ++i)
      cut.put(i, shards.data() + i * cut.bytes_each(), result->data);
  }
  if (result != nullptr)
    x.memory[0] = store_.hold(std::move(result));
}

caf::error rank_computation::collect_own(pending& x) {
  TRY(data, prepare(x));
  pending* const all[] = {&x};
  RETURN_ERROR(combine(all));
  if (data->output == nullptr) {
    TRY(room, room_for(x.results[0]));
    data->output = std::move(*room);
  }
  if (data->output != data->input)
    std::memcpy(data->output->data, data->input->data, data->count * training::bytes_of(job_.as));
  complete(x, std::move(data->output));
  return caf::none;
}

} // namespace ringmaster::training
