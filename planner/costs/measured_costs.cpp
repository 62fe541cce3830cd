#include "planner/costs/measured_costs.hpp"

#include "runtime/schedule/bus_bandwidth.hpp"
#include "training/language/collective_kind.hpp"

#include <cmath>
#include <map>
#include <tuple>

namespace ringmaster::training {

namespace {

constexpr uint64_t measured_element_bytes = 4;

gpu_system this_host(const cost_constants& network, double memory_bandwidth) {
  auto x = *system_of("cpu-2core");
  x.name = "measured";
  x.memory_bandwidth = memory_bandwidth;
  x.hop_bandwidth = x.network_bandwidth = network.bandwidth;
  x.hop_latency_s = network.latency_s + network.message_overhead_s;
  return x;
}

class measured final : public cost_model {
public:
  measured(const language_model& trained, const cost_constants& network, double memory_bandwidth,
           const training_setting& how)
    : model_(trained), network_(network),
      layers_(transformer_costs(trained, this_host(network, memory_bandwidth), how)) {}

  std::string_view name() const override { return "measured"; }
  std::string about() const override { return layers_->about(); }
  uint64_t room() const override { return layers_->room(); }
  uint64_t working_memory(const pending& x) const override { return layers_->working_memory(x); }
  std::string_view time_unit() const override { return "s"; }
  std::string_view memory_unit() const override { return "bytes"; }
  bool leaves_at_end() const override { return false; }
  uint64_t memory_of(const value_tag& x) const override { return layers_->memory_of(x); }
  double mfu_percent(const model& trained, uint32_t world_size, double time) const override {
    return layers_->mfu_percent(trained, world_size, time);
  }

  double time_of(const pending& x, uint32_t world_size) const override {
    if (!is_collective(x.what))
      return layers_->time_of(x, world_size);
    const bool samples = of_activation(x.argument.kind);
    const auto count = samples ? static_cast<double>(x.argument.samples.count()) * model_.sequence * model_.hidden
                               : parameters_at(x.argument.layer) / x.argument.tensor.count;
    return (samples ? 2 : 1)
           * seconds(collective_kind_of(x.what), x.among.count,
                     static_cast<uint64_t>(count)); // a layer has two exchanges
  }

private:
  /// Of a layer; the first one has the embedding with it.
  double parameters_at(uint32_t layer) const {
    return parameters_of_layer(model_, layer)
           + (layer == 0 ? static_cast<double>(model_.hidden) * model_.vocabulary : 0);
  }
  /// Seconds of a collective on `count` elements in all.
  double seconds(proto::CollectiveKind kind, uint32_t ranks, uint64_t count) const {
    if (ranks == 1)
      return 0;
    auto [at, is_new] = known_.try_emplace({kind, ranks, count}, 0);
    if (!is_new)
      return at->second;
    plan_request request;
    request.world_size = ranks;
    request.count = count_for_size(kind, ranks, count);
    auto picked = select_algorithm(kind, request, measured_element_bytes, network_);
    return at->second = picked ? picked->time.total_s() : HUGE_VAL;
  }

  language_model model_;
  cost_constants network_;
  std::unique_ptr<cost_model> layers_;
  mutable std::map<std::tuple<proto::CollectiveKind, uint32_t, uint64_t>, double> known_;
};

} // namespace

std::unique_ptr<cost_model> measured_costs(const language_model& trained, const cost_constants& network,
                                           double memory_bandwidth, const training_setting& how) {
  return std::make_unique<measured>(trained, network, memory_bandwidth, how);
}

} // namespace ringmaster::training
