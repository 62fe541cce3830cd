#include "training/computed/computed_world.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/invariants/ensure.hpp"
#include "training/computed/step_world.hpp"

#include <algorithm>
#include <cstring>

namespace ringmaster::training {

namespace {

template <class T>
void add_up(const std::vector<const std::byte*>& from, uint64_t count, std::byte* to) {
  auto* sums = reinterpret_cast<T*>(to);
  std::memcpy(to, from.front(), count * sizeof(T));
  for (size_t rank = 1; rank < from.size(); ++rank)
    for (uint64_t i = 0; i < count; ++i)
      sums[i] += reinterpret_cast<const T*>(from[rank])[i];
}

void add_up(precision as, const std::vector<const std::byte*>& from, uint64_t count, std::byte* to) {
  if (as == precision::float32)
    add_up<float>(from, count, to);
  else
    add_up<double>(from, count, to);
}

} // namespace

computed_world::computed_world(const training_job& job, uint32_t world_size, uint64_t bytes) : job_(job) {
  ensure(world_size > 0, "a world has ranks");
  for (uint32_t i = 0; i < world_size; ++i)
    ranks_.push_back(std::make_unique<member>(job, bytes));
}

caf::expected<loss_sums> computed_world::run_step() {
  const auto world_size = static_cast<uint32_t>(ranks_.size());
  const step_world world{world_size, setting_of(job_.shape)};
  const auto shape = step_shape(job_, world);
  RETURN_ERROR(job_.strategy->check(shape, world_size));
  ensure(ready_.empty() && open_.empty(), "nothing of the last step is under way");
  error_ = caf::none;
  desk_ = {};
  loss_sums losses;
  for (auto& each : ranks_)
    RETURN_ERROR(each->computation.begin_step(step_, world));
  std::vector<rank> ranks;
  for (uint32_t i = 0; i < world_size; ++i)
    ranks.emplace_back(*this, i, world_size, shape);
  {
    std::vector<strategy> bodies;
    for (auto& each : ranks) {
      bodies.push_back(job_.strategy->run(each, shape));
      ready_.push_back(bodies.back().body());
    }
    while (!ready_.empty() && !error_) {
      auto next = ready_.front();
      ready_.pop_front();
      next.resume();
    }
    if (auto why = desk_.waiting(); why && !error_)
      error_ = invalid(std::move(*why));
    if (!error_)
      error_ = desk_.left_behind();
  }
  ready_.clear();
  open_.clear();
  if (error_)
    return error_;
  ++step_;
  for (auto& each : ranks_)
    losses.add(each->computation.losses());
  return losses;
}

void computed_world::fail(uint32_t, caf::error why) {
  if (!error_)
    error_ = std::move(why);
}

bool computed_world::begin(pending& x) {
  if (error_)
    return false;
  if (needs_others(x))
    return exchange(x);
  if (auto problem = ranks_[x.rank]->computation.compute(x)) {
    fail(x.rank, refused(x, problem));
    return false;
  }
  x.ended = true;
  return true;
}

bool computed_world::await(pending& x) {
  return !error_ && x.ended;
}

bool computed_world::exchange(pending& x) {
  auto data = ranks_[x.rank]->computation.prepare(x);
  if (!data) {
    fail(x.rank, refused(x, data.error()));
    return false;
  }
  arrival mine;
  mine.about = shown(x.what, x.aside, x.rank, x.peer, x.among, x.argument, x.results[0].has);
  mine.number = ++numbers_;
  mine.count = data->count;
  x.ended = x.what == op::send; // no rank waits for it
  open_[mine.number] = {x.ended ? nullptr : &x, std::move(*data)};
  auto all = desk_.arrive(std::move(mine));
  if (!all) {
    fail(x.rank, all.error());
    return false;
  }
  if (*all)
    if (auto problem = take_place(**all, &x))
      fail(x.rank, std::move(problem));
  return !error_ && x.ended;
}

void computed_world::end(const arrival& x, const value_tag& result, block_pointer data, const pending* now) {
  auto node = open_.extract(x.number);
  ensure(!node.empty(), "a communication that ends was under way");
  auto* its = node.mapped().of;
  if (its == nullptr)
    return;
  its->results[0] = result;
  if (x.about.what == op::receive)
    its->argument = result;
  ranks_[its->rank]->computation.complete(*its, std::move(data));
  its->ended = true;
  if (its != now && its->waiter)
    ready_.push_back(its->waiter);
}

caf::error computed_world::take_place(exchange_desk::exchange& all, const pending* now) {
  ensure(!all.empty(), "a communication has ranks");
  const auto bytes_each = bytes_of(job_.as);
  const auto what = all.front().about.what;
  std::vector<rank_computation::transfer*> data;
  std::vector<const std::byte*> inputs;
  for (auto& each : all) {
    auto& its = open_.at(each.number).data;
    if (its.output == nullptr && each.about.what != op::send) {
      TRY(room, ranks_[each.about.rank]->computation.room_for(each.about.results[0]));
      its.output = std::move(*room);
    }
    data.push_back(&its);
    inputs.push_back(its.input ? its.input->data + its.offset : nullptr);
  }
  const auto root = what == op::broadcast ? all.front().about.among.index_of(all.front().about.peer) : 0;
  ensure(root < data.size(), "the root of a broadcast takes part in it");
  const auto count = data[root]->count, bytes = count * bytes_each;
  const bool adds = what == op::all_reduce;
  std::vector<std::byte> sum(adds ? bytes : 0);
  if (adds)
    add_up(job_.as, inputs, count, sum.data());
  for (size_t i = 0; i < all.size(); ++i) {
    auto* to = data[i]->output ? data[i]->output->data + data[i]->offset : nullptr;
    if (adds)
      std::memcpy(to, sum.data(), bytes);
    else if (what == op::reduce_scatter)
      add_up(
        job_.as,
        [&] {
          auto blocks = inputs;
          for (auto& each : blocks)
            each += i * bytes;
          return blocks;
        }(),
        count, to);
    else if (what == op::all_gather)
      for (size_t from = 0; from < all.size(); ++from)
        std::memcpy(to + from * bytes, inputs[from], bytes);
    else if (to != nullptr && to != inputs[root])
      std::memcpy(to, inputs[root], bytes);
  }
  for (size_t i = 0; i < all.size(); ++i)
    end(all[i], all[i].about.results[0], data[i]->output, now);
  return caf::none;
}

uint64_t computed_world::bytes_peak() const {
  uint64_t result = 0;
  for (auto& each : ranks_)
    result = std::max(result, each->store.bytes_peak());
  return result;
}

std::vector<double> computed_world::parameter_of(uint32_t layer, uint32_t parameter) const {
  const auto& of = *job_.layers[layer];
  std::vector<double> result(of.parameters()[parameter].elements());
  for (auto& each : ranks_) {
    auto kept = each->computation.kept();
    if (kept.begin(step_))
      continue;
    for (auto& [part, block] : kept.kept())
      for (auto& run : parameter_runs(of, part.tensor, part.part))
        for (uint64_t i = 0;
             part.kind == value_kind::weight && part.layer == layer && run.parameter == parameter && i < run.count; ++i)
          result[run.global + i] = job_.as == precision::float32
                                     ? static_cast<double>(reinterpret_cast<const float*>(block->data)[run.local + i])
                                     : reinterpret_cast<const double*>(block->data)[run.local + i];
  }
  return result;
}

} // namespace ringmaster::training
