#include "planner/estimates/sharded_times.hpp"

#include "planner/estimates/exchange_times.hpp"
#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <array>

namespace ringmaster::training {

namespace {

shard_exchanges exchanged(const rank_parameters& x, const gpu_system& on, const training_setting& how) {
  return {shard_time(bytes_of(how.computed_in).gathered, x, on, how), shard_time(how.gradient_bytes, x, on, how)};
}

/// A layer, with what it has of the model's ends: seconds of each operation.
struct sharded_layer {
  double forward = 0, backward = 0; ///< Beside others' collectives.
  double alone = 0;                 ///< Both, if there were none.
  double gather = 0, scatter = 0;   ///< Among those that share its weights.
  double busy = 0;                  ///< See `busy_cards`.
  double replicas = 0;              ///< An all_reduce of a shard's sum over the other groups.
};

class sharded_layers {
public:
  sharded_layers(const language_model& m, const gpu_system& on, const training_setting& how,
                 const micro_batch_times& times)
    : m_(m), on_(on), how_(how) {
    const std::array<const layer_times*, 4> worked{&times.dense, &times.windowed_dense, &times.sparse,
                                                   &times.windowed_sparse};
    for (size_t i = 0; i < kinds_.size(); ++i)
      kinds_[i] = layer({i >= 2, i % 2 == 1}, *worked[i]);
    first_ = kind_of(0);
    last_ = kind_of(m.layers - 1);
    add(m.layers == 1 ? last_ : first_, {table_parameters(m, how), 0});
    add(last_, output_parameters(m, how));
    auto& embeds = m.layers == 1 ? last_ : first_;
    embeds.forward += times.ends.embedding_forward();
    embeds.backward += times.ends.embedding_backward();
    embeds.alone += times.ends.embedding;
  }

  const sharded_layer& operator[](uint32_t layer) const {
    return layer + 1 == m_.layers ? last_ : layer == 0 ? first_ : kind_of(layer);
  }

private:
  const sharded_layer& kind_of(uint32_t layer) const {
    return kinds_[(m_.has_experts(layer) ? 2 : 0) + (m_.is_windowed(layer) ? 1 : 0)];
  }
  sharded_layer layer(layer_kind kind, const layer_times& alone) const {
    const auto moved = shard_exchanges_of(m_, on_, how_, kind);
    const auto beside = beside_shards(alone, moved, on_);
    return {.forward = beside.forward,
            .backward = beside.backward,
            .alone = alone.forward + alone.backward,
            .gather = moved.gather,
            .scatter = moved.scatter,
            .busy = busy_cards(alone, on_, how_),
            .replicas = replicas_time(layer_parameters(m_, how_, kind))};
  }
  double replicas_time(const rank_parameters& x) const {
    return groups_all_reduce_time({x.dense / how_.sharers(), x.experts / how_.expert_sharers()}, on_, how_);
  }
  void add(sharded_layer& to, const rank_parameters& x) const {
    const auto moved = exchanged(x, on_, how_);
    to.gather += moved.gather;
    to.scatter += moved.scatter;
    to.replicas += replicas_time(x);
  }

  const language_model& m_;
  const gpu_system& on_;
  const training_setting& how_;
  std::array<sharded_layer, 4> kinds_; ///< By experts and windows.
  sharded_layer first_, last_;
};

/// When the rank's two streams have done what was begun.
class two_streams {
public:
  two_streams(const sharded_layers& layers, uint32_t count, double loss)
    : layers_(layers), count_(count), loss_(loss) {}

  void begin() {
    gather(0);
    need(count_ > 1 ? 1 : none);
  }
  void micro_batch(bool is_last) {
    const auto before = now_;
    forward();
    now_ += loss_;
    for (auto l = count_; l-- > 0;) {
      if (l + 1 < count_)
        need(l > 0 ? l - 1 : is_last || count_ == 1 ? none : 1);
      now_ += layers_[l].backward;
      settle(is_last && l + 1 < count_ ? l + 1 : none);
      scattered_ = side_ = std::max(side_, now_) + layers_[l].scatter;
    }
    settle(is_last ? 0 : none);
    ensure(!(now_ < before), "time does not run backwards");
  }
  double end() const { return std::max(now_, side_); }
  double now() const { return now_; }

private:
  static constexpr uint32_t none = UINT32_MAX;

  void forward() {
    for (uint32_t l = 0; l < count_; ++l) {
      if (l > 0)
        need(l + 1 < count_ ? l + 1 : count_ - 2);
      now_ += layers_[l].forward;
    }
  }
  void gather(uint32_t layer) { coming_ = side_ = std::max(side_, now_) + layers_[layer].gather + layers_[layer].busy; }
  /// The layer whose gather is under way, while that of another one begins.
  void need(uint32_t next) {
    const auto here = coming_;
    if (next != none)
      gather(next);
    now_ = std::max(now_, here);
  }
  /// Waits for the scatter under way, and has this layer's sum reduced over the groups.
  void settle(uint32_t layer) {
    now_ = std::max(now_, scattered_);
    if (layer != none && layers_[layer].replicas > 0)
      side_ = std::max(side_, now_) + layers_[layer].replicas;
  }

  const sharded_layers& layers_;
  uint32_t count_;
  double loss_;
  double now_ = 0, side_ = 0;         ///< Of layers and of collectives.
  double coming_ = 0, scattered_ = 0; ///< When the gather and the scatter that are under way end.
};

} // namespace

shard_exchanges shard_exchanges_of(const language_model& m, const gpu_system& on, const training_setting& how,
                                   layer_kind kind) {
  auto moved = exchanged(layer_parameters(m, how, kind), on, how);
  const auto latency = shard_latency(kind.experts && m.experts.count > 0, on, how);
  moved.gather += latency;
  moved.scatter += latency;
  return moved;
}

layer_times beside_shards(layer_times alone, const shard_exchanges& moved, const gpu_system& on) {
  alone.forward += on.exposed_shards * std::min(moved.gather, alone.forward);
  alone.backward += on.exposed_shards * std::min(moved.gather + moved.scatter, alone.backward);
  return alone;
}

double busy_cards(const layer_times& layer, const gpu_system& on, const training_setting& how) {
  auto leaves = [&](uint32_t ranks) { return ranks > on.devices_per_host; };
  if (!leaves(how.sharers() * how.tp))
    return 0;
  const auto &shown = layer.exposed, &behind = layer.hidden;
  return (leaves(how.ep) ? shown.experts + behind.experts : 0)
         + (leaves(how.cp * how.tp) ? shown.context + behind.context : 0);
}

sharded_times sharded_times_of(const language_model& m, const gpu_system& on, const training_setting& how,
                               const micro_batch_times& times) {
  constexpr uint32_t walked_max = 4;
  ensure(how.shard_ranks > 0 && how.micro_batches() > 0, "weights are fully sharded, and there are micro-batches");
  const sharded_layers layers{m, on, how, times};
  const auto count = how.micro_batches(), walked = std::min(count, walked_max);
  two_streams streams{layers, m.layers, times.ends.loss};
  streams.begin();
  double before = 0, each = 0; // of the last one that is not the last of all
  for (uint32_t i = 1; i < walked; ++i) {
    streams.micro_batch(false);
    each = streams.now() - before;
    before = streams.now();
  }
  streams.micro_batch(true);
  double work = times.ends.loss, gathers = -layers[m.layers - 1].gather, scatters = 0, replicas = 0;
  for (uint32_t l = 0; l < m.layers; ++l) {
    work += layers[l].alone;
    gathers += (l == 0 ? 1 : 2) * layers[l].gather;
    scatters += layers[l].scatter;
    replicas += layers[l].replicas;
  }
  const auto exposed = streams.end() + (count - walked) * each - count * work;
  return {exposed, std::max(0.0, count * (gathers + scatters) + replicas - exposed)};
}

} // namespace ringmaster::training
