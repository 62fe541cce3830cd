// Fully sharded data parallel as PyTorch has it (Zhao et al., PyTorch FSDP, 2023): ZeRO stage 3, whose gathers and
// scatters go on a second stream while layers are computed. A layer is gathered --prefetch layers before it is needed,
// and dropped after its forward, and again after its backward; its gradient is scattered beside the backward of the
// layer before, where one scatter is under way at most. All collectives come one after the other on that stream, as
// those of one communicator do. The end of a backward waits for its last scatter, so no whole gradient lies through a
// forward (PyTorch's root module does so in its last hook). A layer that is needed twice in a row, the last one and
// between micro-batches the first, is gathered once.
// Time: load / W + forward and backward + what they do not hide of 2 (L - 1) all_gathers and L reduce_scatters for
// each micro-batch + update / W.
// Memory: 3/W weights a layer, prefetch + 1 whole weights, two whole gradients, and the activations of one micro-batch.
#include "training/strategies/tensor_parallel.hpp"

#include <deque>

namespace ringmaster::training {

/// Whole weights of sharded layers, gathered aside in the order in which a step needs them: there and back through the
/// model for each micro-batch.
class gathered_layers {
public:
  gathered_layers(rank& self, const std::vector<weight>& shards, group sharers, uint64_t micro_batches,
                  uint32_t prefetch)
    : self_(self), shards_(shards), sharers_(sharers), ahead_(prefetch),
      left_(1 + micro_batches * 2 * (shards.size() - 1)) {}

  /// Then `whole` is that layer's, which must be the one at hand or the next in that order.
  strategy need(uint32_t layer) {
    if (whole.valid() && whole.layer() == layer)
      co_return;
    whole.drop();
    for (; left_ > 0 && under_way_.size() <= ahead_; --left_)
      under_way_.push_back(self_.aside(self_.all_gather(shards_[next_layer()], sharers_)));
    whole = co_await std::move(under_way_.front());
    under_way_.pop_front();
  }

  weight whole;

private:
  uint32_t next_layer() {
    const auto last = shards_.size() - 1, turn = last == 0 ? 0 : next_++ % (2 * last);
    return static_cast<uint32_t>(turn <= last ? turn : 2 * last - turn);
  }

  rank& self_;
  const std::vector<weight>& shards_;
  group sharers_;
  uint32_t ahead_;
  uint64_t left_;     ///< Gathers of this step.
  uint64_t next_ = 0; ///< Of them, from 0 on.
  std::deque<handle<weight>> under_way_;
};

/// A rank. It is in no anonymous namespace, since it lies in the frame of a coroutine that others call.
class fully_sharded_rank {
public:
  fully_sharded_rank(rank& self, const model& m, group sharers, group replicas)
    : self_(self), sharers_(sharers), replicas_(replicas), batches_(micro_batches(m, self.index(), self.world_size())),
      weights_(m.layers), states_(m.layers), sums_(m.layers), reduced_(m.layers), inputs_(m.layers + 1),
      layers_(self, weights_, sharers, batches_.size(), m.prefetch) {}

  strategy run() {
    const shard mine{sharers_.index_of(self_.index()), sharers_.count};
    for (uint32_t l = 0; l < weights_.size(); ++l)
      std::tie(weights_[l], states_[l]) = co_await self_.load_weights(l, mine);
    for (auto samples : batches_) {
      co_await forward(samples);
      co_await backward(samples == batches_.back());
    }
    layers_.whole.drop();
    for (auto l = weights_.size(); l-- > 0;) {
      if (reduced_[l].valid())
        sums_[l] = co_await std::move(reduced_[l]);
      co_await self_.update(weights_[l], states_[l], std::move(sums_[l]));
      co_await self_.finish(std::move(weights_[l]));
    }
  }

private:
  strategy forward(range samples) {
    inputs_[0] = co_await self_.input(samples);
    for (uint32_t l = 0; l < weights_.size(); ++l) {
      co_await layers_.need(l);
      inputs_[l + 1] = co_await self_.forward(inputs_[l], layers_.whole);
    }
  }

  strategy backward(bool is_last) {
    auto by_output = co_await self_.loss(inputs_.back());
    inputs_.back().drop();
    for (auto l = static_cast<uint32_t>(weights_.size()); l-- > 0;) {
      co_await layers_.need(l);
      weight_gradient gradient;
      std::tie(gradient, by_output) = co_await self_.backward(inputs_[l], layers_.whole, by_output);
      inputs_[l].drop();
      co_await settle();
      scattered_ = self_.aside(self_.reduce_scatter(std::move(gradient), sharers_));
      scattered_layer_ = l;
      scattered_last_ = is_last;
    }
    co_await settle();
  }

  /// Waits for the scatter under way, which leaves the rank's shard of a gradient.
  strategy settle() {
    if (!scattered_.valid())
      co_return;
    auto& sum = sums_[scattered_layer_];
    co_await self_.add(sum, co_await std::move(scattered_));
    if (scattered_last_ && replicas_.count > 1)
      reduced_[scattered_layer_] = self_.aside(self_.all_reduce(std::move(sum), replicas_));
  }

  rank& self_;
  group sharers_, replicas_;
  std::vector<range> batches_;
  std::vector<weight> weights_;
  std::vector<optimizer_state> states_;
  std::vector<weight_gradient> sums_;
  std::vector<handle<weight_gradient>> reduced_; ///< Sums over the replicas.
  std::vector<activation> inputs_;
  gathered_layers layers_;
  handle<weight_gradient> scattered_;
  size_t scattered_layer_ = 0;
  bool scattered_last_ = false; ///< Of the last micro-batch.
};

strategy run_fully_sharded(rank& self, const model& m, group sharers, group replicas) {
  fully_sharded_rank mine{self, m, sharers, replicas};
  co_await mine.run();
}

const known_strategy fully_sharded{
  .name = "fsdp",
  .what = "ZeRO stage 3 as PyTorch's FSDP: gathers --prefetch layers ahead, scatters beside the backward",
  .run =
    [](rank& self, const model& m) {
      return run_fully_sharded(self, m, self.world(), {self.index(), 1, 1});
    },
  .check = check_data_parallel,
  .cut = batch_cut::when_requested,
  .gathers = sharded::the_model,
  .prefetches = true,
  .hides_sums = true};

} // namespace ringmaster::training
