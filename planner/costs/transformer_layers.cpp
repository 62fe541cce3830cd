#include "planner/costs/transformer_layers.hpp"

#include "planner/estimates/exchange_times.hpp"
#include "planner/estimates/iteration_estimate.hpp"
#include "planner/estimates/sharded_times.hpp"
#include "runtime/invariants/ensure.hpp"

namespace ringmaster::training {

training_setting transformer_layers::with_samples(uint64_t samples) const {
  ensure(samples <= UINT32_MAX, "a batch has at most 2^32 samples");
  auto how = how_;
  how.micro_batch = static_cast<uint32_t>(samples);
  return how;
}

layer_times transformer_layers::layer_of(uint64_t samples, uint32_t place) const {
  if (!places_.is_layer(place))
    return {};
  const auto kind = places_.kind_of(place);
  auto [at, is_new] = known_[samples].layers.try_emplace(kind.experts * 2u + kind.windowed);
  if (is_new) {
    at->second = layer_times_of(trained_, on_, with_samples(samples), kind);
    if (how_.shard_ranks > 0 && how_.overlapped)
      at->second = beside_shards(at->second, shard_exchanges_of(trained_, on_, how_, kind), on_);
  }
  return at->second;
}

double transformer_layers::hop_of(uint64_t samples) const {
  auto& x = known_[samples].hop;
  if (x < 0) {
    const auto how = with_samples(samples);
    x = hop_time(trained_, on_, how);
    if (how_.micro_batches() >= how_.pp) // else stages have nothing to do beside it
      x = exposed_hop_time(x, micro_batch_times_of(trained_, on_, how).whole_model, on_, how);
  }
  return x;
}

const end_times& transformer_layers::ends_of(uint64_t samples) const {
  auto& x = known_[samples].ends;
  if (x.loss == 0)
    x = end_times_of(trained_, on_, with_samples(samples));
  return x;
}

} // namespace ringmaster::training
