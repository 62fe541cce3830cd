#include "training/search/strategy_search.hpp"

#include "runtime/invariants/ensure.hpp"
#include "training/search/strategy_bounds.hpp"
#include "training/simulated/simulator.hpp"

#include <algorithm>

namespace ringmaster::training {

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
