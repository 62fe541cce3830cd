#include "runtime/training/strategy_search.hpp"

#include "runtime/training/simulator.hpp"

#include <algorithm>
#include <array>
#include <cassert>

namespace ringmaster::training {

namespace {

struct choices {
  bool micro_batches = false, sides = false, chunks = false;
};

/// What a strategy looks at.
choices choices_of(const known_strategy& which) {
  const bool cut = which.in_micro_batches, shared = which.staged || which.name == "tensor";
  return {cut, cut && shared && which.name != "3d", which.name == "interleaved"}; // 3d is 1f1b with sides
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
  double bound;
};

constexpr uint64_t operations_for_front = 10'000'000; ///< Some seconds: with more to choose from, the front is longer.
constexpr uint64_t operations_max = 25'000'000; ///< Some ten seconds.
constexpr std::string_view plain_name = "ddp-accumulate";

bool before(const searched& a, const searched& b) {
  return std::pair{a.time, a.peak_memory} < std::pair{b.time, b.peak_memory};
}

class strategy_search {
public:
  strategy_search(const model& plain, uint32_t world_size, const cost_model& costs, uint64_t memory_limit, size_t count)
    : plain_(plain), world_size_(world_size), costs_(costs), memory_limit_(memory_limit), count_(count) {}

  search_outcome run() {
    for (auto& which : strategies())
      list(which);
    std::ranges::stable_sort(candidates_, {}, &candidate::bound);
    found_.candidates = candidates_.size();
    for (auto& x : candidates_) {
      const auto slower_than = [&](double time) { return x.bound >= time; };
      const bool for_best = found_.best.size() < count_ || !slower_than(found_.best.back().time);
      const bool for_plain = x.which->name == plain_name && !(found_.plain && slower_than(found_.plain->time));
      if (!for_best && !for_plain && operations_ >= operations_for_front)
        continue;
      if (operations_of(x) > operations_max - std::min(operations_, operations_max))
        ++found_.too_long;
      else
        try_it(x);
    }
    std::ranges::stable_sort(found_.pareto, before);
    auto least = UINT64_MAX;
    std::erase_if(found_.pareto, [&](auto& x) {
      const bool dominated = x.peak_memory >= least;
      least = std::min(least, x.peak_memory);
      return dominated;
    });
    return std::move(found_);
  }

private:
  void list(const known_strategy& which) {
    const auto open = choices_of(which);
    const std::vector<uint64_t> one{1}, none{0};
    const auto sides = open.sides ? powers_up_to(world_size_) : none;
    const auto chunks = open.chunks ? powers_up_to(std::min<uint64_t>(plain_.layers, 8)) : one;
    const auto batches = open.micro_batches ? powers_up_to(plain_.global_batch) : std::vector{plain_.global_batch};
    for (auto tensor : sides)
      for (auto data : sides)
        for (auto v : chunks)
          for (auto micro_batch : batches) {
            auto m = plain_;
            m.tensor = static_cast<uint32_t>(tensor);
            m.data = static_cast<uint32_t>(data);
            m.chunks = static_cast<uint32_t>(v);
            m.micro_batch = micro_batch;
            if (tensor * data > world_size_ || which.check(m, world_size_))
              continue;
            const auto shape = which.shape(m, world_size_);
            if (open.micro_batches && (micro_batch > m.global_batch / shape.data || v > m.layers))
              continue;
            if (open.sides && (which.name == "tensor" ? shape.tensor : shape.pipeline) == 1
                && world_size_ > 1) // another one, then
              continue;
            candidates_.push_back({&which, m, bound_of(which, m)});
          }
  }

  double time_of(op what, value_kind kind, uint64_t samples, const mesh& shape, group among = {}) const {
    pending x;
    x.what = what;
    x.among = among;
    x.argument.kind = kind;
    x.argument.tensor.count = shape.tensor;
    x.argument.samples = range_set{{0, samples}};
    return costs_.time_of(x, world_size_);
  }

  /// Of the rank that has the least to do beside its layers.
  double bound_of(const known_strategy& which, const model& m) const {
    const auto shape = which.shape(m, world_size_);
    const auto batch = m.global_batch / shape.data, samples = std::min(m.micro_batch, batch),
               count = (batch - 1) / samples + 1;
    const auto rest = batch - (count - 1) * samples;
    return static_cast<double>(count - 1) * pass_bound(m, shape, samples) + pass_bound(m, shape, rest);
  }

  /// Of a micro-batch of so many samples.
  double pass_bound(const model& m, const mesh& shape, uint64_t samples) const {
    const auto layers = static_cast<double>(m.layers) / shape.pipeline;
    auto each = layers
                * (time_of(op::forward, value_kind::activation, samples, shape)
                   + time_of(op::backward, value_kind::activation, samples, shape));
    if (shape.pipeline > 1)
      each += time_of(op::send, value_kind::activation, samples, shape)
              + time_of(op::receive, value_kind::activation, samples, shape);
    if (shape.tensor > 1)
      each += 2 * layers * time_of(op::all_reduce, value_kind::activation, samples, shape, shape.tensor_group(0));
    return each;
  }

  /// About.
  uint64_t operations_of(const candidate& x) const {
    const auto shape = x.which->shape(x.trained, world_size_);
    const auto count = x.which->in_micro_batches ? micro_batch_count(x.trained, shape.data) : 1;
    return uint64_t{world_size_} * (x.trained.layers / shape.pipeline + 1) * (6 * count + 4);
  }

  void try_it(const candidate& x) {
    auto done = simulate([&](rank& self) { return x.which->run(self, x.trained); }, x.trained, world_size_, costs_);
    ++found_.simulated;
    assert(done); // its check has accepted it
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
    if (result.peak_memory > memory_limit_)
      return;
    found_.pareto.push_back(result);
    if (result.which->name == plain_name && (!found_.plain || before(result, *found_.plain)))
      found_.plain = result;
    found_.best.insert(std::ranges::upper_bound(found_.best, result, before), result);
    if (found_.best.size() > count_)
      found_.best.pop_back();
  }

  model plain_;
  uint32_t world_size_;
  const cost_model& costs_;
  uint64_t memory_limit_;
  size_t count_;
  std::vector<candidate> candidates_;
  uint64_t operations_ = 0;
  search_outcome found_;
};

} // namespace

search_outcome search_strategies(uint32_t layers, uint64_t global_batch, uint32_t world_size, const cost_model& costs,
                                 uint64_t memory_limit, size_t count) {
  model plain;
  plain.layers = layers;
  plain.global_batch = global_batch;
  return strategy_search{plain, world_size, costs, memory_limit, count}.run();
}

} // namespace ringmaster::training
