#include "training/search/strategy_search.hpp"

#include "runtime/invariants/ensure.hpp"
#include "training/simulated/simulator.hpp"

#include <algorithm>
#include <cmath>

namespace ringmaster::training {

namespace {

class bounds {
public:
  bounds(const known_strategy& which, const model& m, uint32_t world_size, const cost_model& costs)
    : which_(which), shape_(which.shape(m, world_size)), world_size_(world_size), costs_(costs),
      layers_(static_cast<double>(m.layers) / shape_.pipeline), batch_(m.global_batch / shape_.data),
      samples_(which.cut == batch_cut::never ? batch_ : std::min(m.micro_batch, batch_)),
      count_((batch_ - 1) / samples_ + 1), held_(which.held(m, shape_, count_)), chunks_(chunks_of(which, m)) {}

  /// Of an average rank.
  double time() const {
    const auto rest = batch_ - (count_ - 1) * samples_;
    const auto passes = static_cast<double>(count_ - 1) * pass(samples_) + pass(rest);
    return shares_layers() ? passes : passes + layers_ * once() - update();
  }

  /// Of an average rank, before its first backward and when that has passed through the first of its chunks: then it
  /// has their sums, and one micro-batch less.
  uint64_t memory() const {
    if (shares_layers())
      return 0;
    const auto owned = (gathers() ? 1. / shape_.data : 1.) * which_.copies;
    const auto weights = owned * (memory_of(value_kind::weight) + memory_of(value_kind::optimizer_state));
    const auto sums = owned * memory_of(value_kind::weight_gradient);
    const auto inputs = memory_of(value_kind::activation, std::min(held_ * samples_, batch_));
    const auto gone = memory_of(value_kind::activation, samples_);
    return static_cast<uint64_t>(held_layers() * (weights + inputs + std::max(0., sums - gone) / chunks_));
  }

private:
  /// In a V the rank with the most micro-batches under way may be one with fewer layers.
  double held_layers() const {
    return which_.chunks == chunk_use::there_and_back ? 2 * std::floor(layers_ / 2) : layers_;
  }
  /// All ranks, in one way or another: then it is bounded by its compute only.
  bool shares_layers() const { return which_.gathers == sharded::the_model; }
  /// A layer, from its stage's data-parallel ranks.
  bool gathers() const { return which_.gathers == sharded::a_stage && shape_.data > 1; }

  double time_of(op what, value_kind kind, uint64_t samples, group among = {}) const {
    pending x;
    x.what = what;
    x.among = among;
    x.argument.kind = kind;
    x.argument.tensor = {x.argument.tensor.index, shape_.tensor};
    x.argument.samples = range_set{{0, samples}};
    return costs_.time_of(x, world_size_);
  }
  double data_time(op what) const { return time_of(what, value_kind::weight_gradient, 0, shape_.data_group(0)); }
  double update() const { return gathers() ? 0 : time_of(op::update, value_kind::weight, 0); }
  double memory_of(value_kind kind, uint64_t samples = 0) const {
    value_tag x{.kind = kind, .samples = range_set{{0, samples}}};
    if (!of_activation(kind))
      x.tensor = {x.tensor.index, shape_.tensor};
    return static_cast<double>(costs_.memory_of(x));
  }

  /// What those that share a layer move for it, there and back; the first one needs no gradient by its input where
  /// columns of it would be scattered.
  double between_layers(uint64_t samples) const {
    auto moved = [&](op what) { return time_of(what, value_kind::activation, samples, shape_.tensor_group(0)); };
    return which_.by_columns ? moved(op::all_gather) + (1 - 1 / layers_) * moved(op::reduce_scatter)
                             : 2 * moved(op::all_reduce);
  }

  /// Of a micro-batch.
  double pass(uint64_t samples) const {
    auto layer = time_of(op::forward, value_kind::activation, samples)
                 + time_of(op::backward, value_kind::activation, samples);
    if (shape_.tensor > 1)
      layer += between_layers(samples);
    if (gathers())
      layer += 2 * data_time(op::all_gather) + data_time(op::reduce_scatter);
    if (shape_.pipeline == 1)
      return layers_ * layer;
    return layers_ * layer + time_of(op::send, value_kind::activation, samples)
           + time_of(op::receive, value_kind::activation, samples);
  }

  /// Of a layer, in the whole step.
  double once() const {
    if (gathers())
      return 0;
    auto time = time_of(op::load_weights, value_kind::weight, 0) + update();
    if (shape_.data > 1 && !which_.hides_sums)
      time += data_time(op::all_reduce);
    return time;
  }

  const known_strategy& which_;
  mesh shape_;
  uint32_t world_size_;
  const cost_model& costs_;
  double layers_;
  uint64_t batch_, samples_, count_;
  uint64_t held_; ///< Micro-batches, each in all of the rank's layers, or in the first of its chunks and so on.
  uint32_t chunks_;
};

} // namespace

strategy_bounds bounds_of(const known_strategy& which, const model& m, uint32_t world_size, const cost_model& costs) {
  constexpr auto rounding = 1e-12; // the simulator adds in another order
  bounds all{which, m, world_size, costs};
  return {all.time() * (1 - rounding), all.memory()};
}

namespace {

struct choices {
  bool micro_batches = false, sides = false, chunks = false;
};

/// What a strategy looks at.
choices choices_of(const known_strategy& which) {
  const bool cut = which.cut != batch_cut::never, shared = which.shares != sharing::none;
  return {cut, cut && shared && !which.of_another, which.chunks == chunk_use::parts && !which.of_another};
}

std::vector<uint64_t> powers_up_to(uint64_t most) {
  std::vector<uint64_t> result;
  for (uint64_t x = 1; x <= most; x *= 2)
    result.push_back(x);
  return result;
}

struct candidate {
  const known_strategy* which;
  model trained;
  strategy_bounds bound;
  bool simulated = false;
};

constexpr uint64_t operations_max = 100'000'000; ///< Some ten seconds.

bool before(const searched& a, const searched& b) {
  return std::pair{a.time, a.peak_memory} < std::pair{b.time, b.peak_memory};
}

class strategy_search {
public:
  strategy_search(const model& plain, uint32_t world_size, const cost_model& costs, uint64_t memory_limit, size_t count,
                  const search_watch& watch)
    : plain_(plain), world_size_(world_size), costs_(costs), memory_limit_(memory_limit), count_(count), watch_(watch) {
  }

  search_outcome run() {
    for (auto& which : strategies())
      list(which);
    std::ranges::stable_sort(candidates_, {}, [](auto& x) { return x.bound.time; });
    found_.candidates = candidates_.size();
    operations_planned_ = operations_planned();
    for (auto& x : candidates_)
      if (may_be_best(x))
        try_it(x);
    for (auto& x : candidates_)
      if (may_be_on_front(x))
        try_it(x);
    for (auto& x : candidates_) {
      found_.open_best += may_be_best(x);
      found_.open += may_be_best(x) || may_be_on_front(x);
    }
    return std::move(found_);
  }

private:
  /// Powers of two, and all samples of a rank where that is what a strategy does by itself.
  std::vector<uint64_t> micro_batches_of(const known_strategy& which) const {
    if (which.cut == batch_cut::never)
      return {plain_.global_batch};
    std::vector<uint64_t> result;
    if (which.cut == batch_cut::always || !which.of_another)
      result = powers_up_to(plain_.global_batch);
    if (which.cut == batch_cut::when_requested && !which.check(plain_, world_size_))
      if (auto all = default_micro_batch(which, plain_, world_size_); std::ranges::find(result, all) == result.end())
        result.push_back(all);
    return result;
  }

  /// Those of whole samples and layers: others would train another model, with attention or with experts.
  void list(const known_strategy& which) {
    if (which.needs == beyond::positions || which.needs == beyond::experts)
      return;
    const auto open = choices_of(which);
    const std::vector<uint64_t> one{1}, none{0};
    const auto sides = open.sides ? powers_up_to(world_size_) : none;
    const auto chunks = open.chunks ? powers_up_to(std::min<uint64_t>(plain_.layers, 8)) : one;
    const auto batches = micro_batches_of(which);
    for (auto tensor : sides)
      for (auto data : sides)
        for (auto v : chunks)
          for (auto micro_batch : batches) {
            auto m = plain_;
            m.parallel.tp = static_cast<uint32_t>(tensor);
            m.parallel.dp = static_cast<uint32_t>(data);
            m.parallel.chunks = static_cast<uint32_t>(v);
            m.micro_batch = micro_batch;
            if (tensor * data > world_size_ || which.check(m, world_size_))
              continue;
            const auto shape = which.shape(m, world_size_);
            if (open.micro_batches && (micro_batch > m.global_batch / shape.data || v > m.layers))
              continue;
            const auto side = which.shares == sharing::layers ? shape.tensor : shape.pipeline;
            if (open.sides && side == 1 && world_size_ > 1) // another one, then
              continue;
            candidates_.push_back({&which, m, bounds_of(which, m, world_size_, costs_)});
          }
  }

  bool may_be_best(const candidate& x) const {
    if (x.simulated || x.bound.memory > memory_limit_)
      return false;
    const auto before = [&](const searched& y) {
      return std::pair{x.bound.time, x.bound.memory} < std::pair{y.time, y.peak_memory};
    };
    return found_.best.size() < count_ || before(found_.best.back())
           || (x.which->plain && (!found_.plain || before(*found_.plain)));
  }

  /// No simulated one is as fast and as small as this could be.
  bool may_be_on_front(const candidate& x) const {
    return !x.simulated && x.bound.memory <= memory_limit_ && std::ranges::none_of(found_.pareto, [&](auto& y) {
      return y.time <= x.bound.time && y.peak_memory <= x.bound.memory;
    });
  }

  /// About the number that it may do in all, or all if there are fewer.
  uint64_t operations_planned() const {
    uint64_t sum = 0;
    for (auto& x : candidates_)
      if (sum < operations_max)
        sum += std::min(operations_expected(*x.which, x.trained, world_size_), operations_max);
    return std::clamp<uint64_t>(sum, 1, operations_max);
  }

  /// Unless it would take too long.
  void try_it(candidate& x) {
    if (interrupted_
        || operations_expected(*x.which, x.trained, world_size_)
             > operations_max - std::min(operations_, operations_max))
      return;
    x.simulated = true;
    training_watch look;
    if (watch_)
      look = [&](uint64_t now) {
        const auto part = static_cast<double>(operations_ + now) / static_cast<double>(operations_planned_);
        interrupted_ = interrupted_ || !watch_(part);
        return !interrupted_;
      };
    auto done = simulate([&](rank& self) { return x.which->run(self, x.trained); }, x.trained, world_size_, costs_,
                         false, 1'000'000'000, look);
    ++found_.simulated;
    ensure(done || interrupted_, "an accepted strategy can be simulated"); // its check has accepted it
    if (!done)
      return;
    operations_ += done->operations;
    searched result{x.which,
                    x.trained,
                    done->time,
                    done->end,
                    x.bound,
                    done->ranks[done->peak_rank].peak_memory,
                    done->bubble_fraction,
                    done->communication_fraction};
    if (result.peak_memory <= memory_limit_)
      note(result);
  }

  void note(const searched& x) {
    if (x.which->plain && (!found_.plain || before(x, *found_.plain)))
      found_.plain = x;
    found_.best.insert(std::ranges::upper_bound(found_.best, x, before), x);
    if (found_.best.size() > count_)
      found_.best.pop_back();
    auto& front = found_.pareto;
    if (std::ranges::any_of(front, [&](auto& y) { return y.time <= x.time && y.peak_memory <= x.peak_memory; }))
      return;
    std::erase_if(front, [&](auto& y) { return x.time <= y.time && x.peak_memory <= y.peak_memory; });
    front.insert(std::ranges::upper_bound(front, x, before), x);
  }

  model plain_;
  uint32_t world_size_;
  const cost_model& costs_;
  uint64_t memory_limit_;
  size_t count_;
  const search_watch& watch_;
  bool interrupted_ = false;
  std::vector<candidate> candidates_;
  uint64_t operations_ = 0, operations_planned_ = 1;
  search_outcome found_;
};

} // namespace

uint64_t operations_expected(const known_strategy& which, const model& trained, uint32_t world_size) {
  const auto shape = which.shape(trained, world_size);
  const auto count = which.cut != batch_cut::never ? micro_batch_count(trained, shape.data) : 1;
  const uint64_t ring = shape.context > 1 ? 10 * shape.context : 0; // of keys, where they go around
  return uint64_t{world_size} * (trained.layers / shape.pipeline + 1) * ((6 + ring) * count + 4);
}

search_outcome search_strategies(uint32_t layers, uint64_t global_batch, uint32_t world_size, const cost_model& costs,
                                 uint64_t memory_limit, size_t count, const search_watch& watch) {
  model plain;
  plain.layers = layers;
  plain.global_batch = global_batch;
  return strategy_search{plain, world_size, costs, memory_limit, count, watch}.run();
}

} // namespace ringmaster::training
