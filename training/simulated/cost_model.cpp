// LLM training puzzles (Sasha Rush, 2023). Hidden 512, length 256; time is abstract, one unit for a layer and a sample.
// The DL-training lab of a graduate course. One GPU has 1000 TFLOP/s and 3072 GB/s, NVLink's 450 GB/s up to 8 ranks and
// 50 GB/s beyond; what part of that an operation reaches depends on its size. A layer is one product with an H x H
// matrix, over blocks of 1024 positions.
#include "training/simulated/cost_model.hpp"

#include "messages/errc.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster::training {

caf::expected<const cost_model*> cost_model_of(std::string_view name) {
  if (name == "lab")
    return &lab_costs();
  if (name == "puzzles")
    return &puzzle_costs();
  return invalid(fmt::format("there is no cost model \"{}\"; there are: lab, puzzles", name));
}

namespace {

class puzzles final : public cost_model {
public:
  std::string_view name() const override { return "puzzles"; }
  std::string_view time_unit() const override { return "units"; }
  std::string_view memory_unit() const override { return "elements"; }
  bool leaves_at_end() const override { return true; }
  bool knows(beyond x) const override { return x != beyond::positions; } // they have no attention

  uint64_t memory_of(const value_tag& x) const override {
    constexpr uint64_t width = 512, length = 256;
    if (of_activation(x.kind))
      return x.samples.count() * width * length * sent_positions(x).count / sent_positions(x).of / x.part.count;
    return width * width / (x.has == form::experts ? 1 : x.tensor.count) / x.part.count;
  }

  double time_of(const pending& x, uint32_t) const override {
    switch (x.what) {
      case op::forward: // the positions for a rank's experts are 1 / tensor.count of them
      case op::backward: {
        const auto sent = sent_positions(x.argument);
        return static_cast<double>(x.argument.samples.count()) * sent.count / sent.of / x.argument.tensor.count;
      }
      case op::backward_input:
      case op::backward_weight: return static_cast<double>(x.argument.samples.count()) / x.argument.tensor.count / 2;
      case op::update: return 0.5;
      case op::all_reduce:
      case op::all_gather:
      case op::reduce_scatter:
      case op::all_to_all:
      case op::broadcast: return 0.3;
      case op::offload:
      case op::fetch:
      case op::send:
      case op::receive: return 0.2;
      default: return 0;
    }
  }

  double mfu_percent(const model&, uint32_t, double) const override { return -1; }
};

} // namespace

const cost_model& puzzle_costs() {
  static const puzzles costs;
  return costs;
}

namespace {

constexpr double lab_hidden = 4096, lab_positions = 1024, element_bytes = 2;
constexpr double peak_flops = 1000e12, hbm_bandwidth = 3072e9, host_bandwidth = 450e9;
constexpr double matrix = lab_hidden * lab_hidden; ///< Elements.

double load_efficiency(double bytes) {
  return bytes >= 100e6 ? 0.95 : bytes >= 10e6 ? 0.9 : bytes >= 1e6 ? 0.7 : 0.3;
}

double compute_efficiency(double flops) {
  return flops >= 128e9 ? 0.95 : flops >= 16e9 ? 0.9 : flops >= 1e9 ? 0.6 : 0.1;
}

double memory_efficiency(double bytes) {
  return bytes >= 100e6 ? 0.9 : bytes >= 10e6 ? 0.75 : bytes >= 1e6 ? 0.6 : 0.3;
}

/// The slower of arithmetic and memory.
inline double roofline(double flops, double bytes) {
  return std::max(flops / (peak_flops * compute_efficiency(flops)), bytes / (hbm_bandwidth * memory_efficiency(bytes)));
}

/// Its constants depend on the size of the whole world.
struct network {
  double bandwidth, efficiency, latency, all_reduce_extra;
};

network network_of(uint32_t world_size) {
  return world_size <= 8 ? network{450e9, 0.65, 1e-5, 1} : network{50e9, 0.9, 2e-5, 0};
}

/// Keys, and what attention makes of them, are of a tensor-parallel rank's own heads.
uint32_t columns_shared_by(const value_tag& x) {
  return x.kind >= value_kind::attention_keys ? x.tensor.count : 1;
}

/// Of the samples' positions, those that a collective's ranks have between them.
double reached_part(const pending& x) {
  const auto& tag = x.argument;
  if (!of_activation(tag.kind) || tag.has == form::whole || tag.has == form::experts)
    return 1;
  const bool own = tag.has == form::summand || x.results[0].has == form::experts;
  return static_cast<double>(own ? 1 : x.among.count) / tag.part.count;
}

class lab final : public cost_model {
public:
  std::string_view name() const override { return "lab"; }
  std::string_view time_unit() const override { return "s"; }
  std::string_view memory_unit() const override { return "elements"; }
  bool leaves_at_end() const override { return false; }
  bool knows(beyond) const override { return true; }

  uint64_t memory_of(const value_tag& x) const override {
    constexpr uint64_t row = 4096 * 1024;
    if (!of_activation(x.kind))
      return uint64_t{4096 * 4096} / (uint64_t{x.part.count} * (x.has == form::experts ? 1 : x.tensor.count));
    const auto whole = x.samples.count() * row;
    if (x.has == form::whole && x.kind < value_kind::attention_keys) // nearly all: a division takes its time
      return whole;
    const auto sent = sent_positions(x);
    const auto keys_and_values = of_keys(x.kind) ? 2 : 1;
    return whole * keys_and_values * sent.count / (uint64_t{sent.of} * x.part.count * columns_shared_by(x));
  }

  double time_of(const pending& x, uint32_t world_size) const override {
    const auto whole_samples = static_cast<double>(x.argument.samples.count());
    const auto shards = static_cast<double>(x.argument.part.count);
    auto samples = whole_samples, tensor = static_cast<double>(x.argument.tensor.count);
    if (x.argument.has == form::experts || (x.argument.has == form::sequence && !is_communication(x.what)))
      samples /= shards; // the same number of positions
    if (x.argument.has == form::experts) {
      const auto sent = sent_positions(x.argument);
      samples = samples * sent.count / sent.of;
      tensor = 1;
    }
    const auto link = network_of(world_size);
    switch (x.what) {
      case op::load_weights: {
        const auto bytes = element_bytes * matrix / tensor / shards;
        return bytes / (host_bandwidth * load_efficiency(bytes));
      }
      case op::forward:
      case op::backward:
      case op::backward_input:
      case op::backward_weight: {
        const auto both = roofline(2 * matrix / tensor * lab_positions * samples,
                                   element_bytes * (matrix / tensor + 2 * lab_positions * samples * lab_hidden));
        // a half: one of backward's two products, or half of the time of the one that the lab counts
        return x.what == op::forward || x.what == op::backward ? both : both / 2;
      }
      case op::attend:
      case op::attend_backward: { // half of the scores, for they are causal; FlashAttention's two and five products
        const auto run = x.argument.positions();
        const auto keys = lab_positions * run.count / run.of;
        return roofline((x.what == op::attend ? 2 : 5) * lab_hidden / tensor * lab_positions * samples * keys,
                        element_bytes * lab_hidden / tensor * (2 * lab_positions * samples + 2 * keys * whole_samples));
      }
      case op::update: {
        const auto flops = lab_hidden
                           * static_cast<double>(static_cast<uint64_t>(lab_hidden) / x.argument.part.count
                                                 / static_cast<uint64_t>(tensor));
        return roofline(flops, 6 * flops);
      }
      case op::all_reduce:
      case op::all_gather:
      case op::reduce_scatter:
      case op::all_to_all:
      case op::broadcast: {
        const bool world = x.among.count
                           == world_size; // the lab knows no other; smaller groups of 8 neighbours have NVLink, too
        const auto within = world || x.among.first / 8 != x.among.last() / 8 ? link : network_of(8);
        const auto extra = x.what == op::all_reduce ? within.all_reduce_extra : 0;
        const auto values = (of_keys(x.argument.kind) ? 2. : 1.) * reached_part(x) / columns_shared_by(x.argument);
        const auto elements = of_activation(x.argument.kind) ? values * lab_hidden * lab_positions * samples
                                                             : matrix / tensor;
        const auto bytes = element_bytes * elements;
        return within.latency + bytes * (1 + extra / x.among.count) / (within.bandwidth * within.efficiency);
      }
      case op::offload:
      case op::fetch: {
        const auto bytes = element_bytes * static_cast<double>(memory_of(x.argument));
        return bytes / (host_bandwidth * load_efficiency(bytes));
      }
      case op::send:
      case op::receive: {
        const auto part = x.argument.has == form::sequence ? shards : 1;
        const auto values = (of_keys(x.argument.kind) ? 2 : 1) / part / columns_shared_by(x.argument);
        const auto elements = of_activation(x.argument.kind) ? values * lab_hidden * lab_positions * samples
                                                             : matrix / tensor / shards;
        // Pipelines' hops are the lab's, by the world's network; keys', which it does not have, by that of their group.
        const bool near = of_keys(x.argument.kind) && x.rank / 8 == x.peer / 8;
        const auto by = near ? network_of(8) : link;
        return by.latency + element_bytes * elements / (by.bandwidth * by.efficiency);
      }
      default: return 0;
    }
  }

  double mfu_percent(const model& trained, uint32_t world_size, double time) const override {
    const auto flops = 4 * matrix * static_cast<double>(trained.global_batch) * lab_positions * trained.layers;
    return 100 * flops / (peak_flops * world_size) / time;
  }
};

} // namespace

const cost_model& lab_costs() {
  static const lab costs;
  return costs;
}

} // namespace ringmaster::training
