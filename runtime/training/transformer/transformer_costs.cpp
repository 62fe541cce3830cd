#include "runtime/training/transformer/transformer_costs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace ringmaster::training {

namespace {

constexpr double host_link_bandwidth = 25e9; ///< PCI Express 4, 16 lanes.

class transformer final : public cost_model {
  static constexpr double element_bytes = 2, gradient_bytes = 4, state_bytes = 12;

public:
  transformer(const gpt& trained, const gpu_system& on, const parallel_setting& how)
    : gpt_(trained), on_(on), how_(how) {}

  std::string_view name() const override { return "transformer"; }
  std::string about() const override {
    return fmt::format("{} on {}, recompute {}", gpt_.name, on_.name, ringmaster::training::name_of(how_.again));
  }
  uint64_t room() const override { return static_cast<uint64_t>(on_.memory_bytes - on_.reserved_bytes); }
  std::string_view time_unit() const override { return "s"; }
  std::string_view memory_unit() const override { return "bytes"; }
  bool leaves_at_end() const override { return false; }

  uint64_t memory_of(const value_tag& x) const override {
    if (of_activation(x.kind))
      return static_cast<uint64_t>(activation_memory(x));
    const auto each = x.kind == value_kind::weight            ? element_bytes
                      : x.kind == value_kind::weight_gradient ? gradient_bytes
                                                              : state_bytes;
    return static_cast<uint64_t>(each * parameters(x));
  }

  double time_of(const pending& x, uint32_t world_size) const override;

  uint64_t working_memory(const pending& x) const override {
    const bool runs_again = x.what == op::backward || x.what == op::backward_input;
    if (how_.again == recomputation::none || !runs_again)
      return 0;
    return static_cast<uint64_t>(activation_bytes(gpt_, static_cast<double>(x.argument.samples.count()),
                                                  how_.shape.tensor, in_sequence(), recomputation::none));
  }

  double mfu_percent(const model& trained, uint32_t world_size, double time) const override {
    return 100 * flops_of(gpt_, static_cast<double>(trained.global_batch)) / (on_.peak_flops * world_size * time);
  }

private:
  struct times {
    layer_times layer;
    end_times ends;
  };

  bool in_sequence() const { return how_.sequence_parallel && how_.shape.tensor > 1; }
  /// Of a layer's shard.
  double parameters(const value_tag& x) const {
    return layer_parameters(gpt_, x.layer) / x.tensor.count / x.part.count;
  }
  double activation_memory(const value_tag& x) const {
    const auto samples = static_cast<double>(x.samples.count());
    const auto plain = element_bytes * samples * gpt_.sequence * gpt_.hidden;
    if (x.kind == value_kind::activation && x.layer == gpt_.layers && x.has == form::whole) // the logits come of it
      return plain + 2 * plain / gpt_.hidden * gpt_.vocabulary / how_.shape.tensor;
    const bool part = x.has == form::sequence || x.has == form::heads;
    const bool kept = x.kind == value_kind::activation && x.layer < gpt_.layers && x.has != form::summand
                      && part == in_sequence();
    if (!kept)
      return part ? plain / x.part.count : plain;
    const auto bytes = activation_bytes(gpt_, samples, how_.shape.tensor, in_sequence(), how_.again);
    return how_.again == recomputation::full && part ? bytes / x.part.count : bytes;
  }
  const times& times_of(uint64_t samples) const;
  double collective_time(const pending& x) const;

  gpt gpt_;
  gpu_system on_;
  parallel_setting how_;
  mutable std::map<uint64_t, times> known_; ///< By samples.
};

const transformer::times& transformer::times_of(uint64_t samples) const {
  auto [at, is_new] = known_.try_emplace(samples);
  if (is_new) {
    auto how = how_;
    how.micro_batch = static_cast<uint32_t>(samples);
    at->second = {layer_times_of(gpt_, on_, how), end_times_of(gpt_, on_, how)};
  }
  return at->second;
}

double transformer::collective_time(const pending& x) const {
  const auto& tag = x.argument;
  const auto halves = x.what == op::all_reduce ? 1.0 : 0.5;
  if (of_activation(tag.kind)) // a layer has two of them on its way
    return halves * 2
           * tensor_all_reduce_time(element_bytes * static_cast<double>(tag.samples.count()) * gpt_.sequence
                                      * gpt_.hidden,
                                    x.among.count, on_);
  auto whole = tag;
  whole.part = {};
  if (x.among.count == 2 && x.among.stride % (how_.shape.tensor * how_.shape.data) == 0)
    return halves * mirror_all_reduce_time(parameters(whole), on_, how_.shape); // of two stages
  return halves * gradient_all_reduce_time(parameters(whole), on_, how_.shape);
}

double transformer::time_of(const pending& x, uint32_t) const {
  const auto& tag = x.argument;
  if (is_collective(x.what))
    return collective_time(x);
  switch (x.what) {
    case op::forward:
    case op::backward:
    case op::backward_input:
    case op::backward_weight: {
      const auto& [layer, ends] = times_of(tag.samples.count());
      const auto embedding = tag.layer == 0 ? ends.embedding / 3 : 0;
      if (x.what == op::forward)
        return layer.forward - layer.exchange + embedding;
      if (x.what == op::backward)
        return layer.backward - layer.exchange + 2 * embedding;
      return x.what == op::backward_weight ? layer.by_weight
                                           : layer.backward - layer.exchange - layer.by_weight + 2 * embedding;
    }
    case op::loss: return times_of(tag.samples.count()).ends.loss;
    case op::update:
      return parameters(tag) * on_.optimizer_bytes / on_.memory_bandwidth + (tag.layer == 0 ? on_.iteration_s : 0);
    case op::receive: {
      auto how = how_;
      how.micro_batch = static_cast<uint32_t>(tag.samples.count());
      return hop_time(gpt_, on_, how);
    }
    case op::offload:
    case op::fetch: return static_cast<double>(memory_of(tag)) / host_link_bandwidth;
    default: return 0; // a send is the receiver's time; weights are there
  }
}

} // namespace

std::unique_ptr<cost_model> transformer_costs(const gpt& trained, const gpu_system& on, const parallel_setting& how) {
  return std::make_unique<transformer>(trained, on, how);
}

} // namespace ringmaster::training
