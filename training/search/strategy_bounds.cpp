#include "training/search/strategy_bounds.hpp"

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

  /// Of an average rank, before its first backward and when that has passed through the first of its chunks: then it has
  /// their sums, and one micro-batch less.
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

} // namespace ringmaster::training
