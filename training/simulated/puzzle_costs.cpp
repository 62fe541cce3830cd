// LLM training puzzles (Sasha Rush, 2023). Hidden 512, length 256; time is abstract, one unit for a layer and a sample.
#include "training/simulated/cost_model.hpp"

namespace ringmaster::training {

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

} // namespace ringmaster::training
