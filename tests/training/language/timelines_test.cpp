// Small cases by hand, a cell a unit of time: forward 1, backward 2 or two halves of 1, a collective and an update
// 1, hops nothing where it is not said; attention to a rank's keys 1, the backward of that 2.
#include "training/simulated/simulator.hpp"
#include "training/strategies/strategies.hpp"

#include "messages/errc.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>

using namespace ringmaster;
using namespace ringmaster::training;

namespace {

struct unit_costs : cost_model {
  double hop = 0;

  std::string_view name() const override { return "units"; }
  std::string_view time_unit() const override { return "units"; }
  std::string_view memory_unit() const override { return "values"; }
  uint64_t memory_of(const value_tag&) const override { return 1; }
  double time_of(const pending& x, uint32_t) const override {
    switch (x.what) {
      case op::forward:
      case op::backward_input:
      case op::backward_weight:
      case op::attend:
      case op::update: return 1;
      case op::attend_backward:
      case op::backward: return 2;
      case op::send:
      case op::receive: return hop;
      default: return is_collective(x.what) ? 1 : 0;
    }
  }
  bool leaves_at_end() const override { return true; }
  double mfu_percent(const model&, uint32_t, double) const override { return -1; }
};

char letter_of(op x) {
  switch (x) {
    case op::forward: return 'F';
    case op::backward: return 'B';
    case op::backward_input: return 'I';
    case op::backward_weight: return 'W';
    case op::update: return 'U';
    case op::all_reduce: return 'R';
    case op::all_gather: return 'G';
    case op::reduce_scatter: return 'S';
    case op::all_to_all: return 'T';
    case op::attend: return 'A';
    case op::attend_backward: return 'a';
    case op::send: return '>';
    case op::receive: return '<';
    default: return '?';
  }
}

/// A line a rank, and one for its second stream where it has something there; a number is the layer, or the
/// micro-batch.
std::string timeline(std::string_view name, const model& m, uint32_t world_size, bool by_layer, double hop = 0) {
  unit_costs costs;
  costs.hop = hop;
  auto* which = strategy_of(name);
  REQUIRE(which != nullptr);
  REQUIRE(!which->check(m, world_size));
  auto found = simulate([&](rank& self) { return which->run(self, m); }, m, world_size, costs, true);
  REQUIRE_MESSAGE(found.engaged(), render(found.error()));
  std::vector<std::string> lines(2 * world_size);
  for (auto& x : found->events) {
    auto& line = lines[2 * x.rank + x.aside];
    for (auto at = std::lround(x.start); at < std::lround(x.start + x.duration); ++at) {
      while (line.size() < 3 * static_cast<size_t>(at))
        line += " . ";
      line += fmt::format("{}{} ", letter_of(x.what),
                          by_layer || is_collective(x.what) || x.what == op::update ? x.layer
                                                                                    : x.samples.begin / m.micro_batch);
    }
  }
  std::string text;
  for (auto& line : lines)
    if (!line.empty())
      text += line + "\n";
  return text;
}

std::string by_layer(std::string_view name, const model& m, uint32_t world_size) {
  return timeline(name, m, world_size, true);
}
std::string by_batch(std::string_view name, const model& m, uint32_t world_size) {
  return timeline(name, m, world_size, false);
}

} // namespace

TEST_CASE("timelines: data parallel reduces a layer right after its backward, or all in the end") {
  // Two ranks, two layers, a sample each: forward 0 and 1, backward 1 and 0, a reduction after each, updates.
  CHECK(by_layer("ddp", {2, 2, 1}, 2)
        == "F0 F1 B1 B1 R1 B0 B0 R0 U0 U1 \n"
           "F0 F1 B1 B1 R1 B0 B0 R0 U0 U1 \n");
  // Two micro-batches a rank; each layer's sum is reduced once, before its update.
  CHECK(by_layer("ddp-accumulate", {2, 4, 1}, 2)
        == "F0 F1 B1 B1 B0 B0 F0 F1 B1 B1 B0 B0 R0 U0 R1 U1 \n"
           "F0 F1 B1 B1 B0 B0 F0 F1 B1 B1 B0 B0 R0 U0 R1 U1 \n");
  // Layer 1's sum is complete after 10 units, and is reduced beside layer 0's backward; layer 0's beside the update
  // of 1.
  CHECK(by_layer("ddp-overlap", {2, 4, 1, 1}, 2)
        == "F0 F1 B1 B1 B0 B0 F0 F1 B1 B1 B0 B0 U1 U0 \n"
           " .  .  .  .  .  .  .  .  .  . R1  . R0 \n"
           "F0 F1 B1 B1 B0 B0 F0 F1 B1 B1 B0 B0 U1 U0 \n"
           " .  .  .  .  .  .  .  .  .  . R1  . R0 \n");
}

TEST_CASE("timelines: what is sharded is gathered where it is needed, and scattered where it comes about") {
  const model m{2, 2, 1};
  auto both = [](const std::string& line) { return line + "\n" + line + "\n"; };
  // A layer is gathered for its forward and its backward; whole gradients are reduced in the end.
  CHECK(by_layer("wsdp", m, 2) == both("G0 F0 G1 F1 G1 B1 B1 G0 B0 B0 R0 U0 R1 U1 "));
  // Whole weights; in the end a gradient is scattered, its part updated, and the weight gathered.
  CHECK(by_layer("zero1", m, 2) == both("F0 F1 B1 B1 B0 B0 S0 U0 G0 S1 U1 G1 "));
  // The same, but a gradient is scattered right after its backward.
  CHECK(by_layer("zero2", m, 2) == both("F0 F1 B1 B1 S1 B0 B0 S0 U0 G0 U1 G1 "));
  // Gathered and scattered throughout; the updates are all that is left.
  CHECK(by_layer("zero3", m, 2) == both("G0 F0 G1 F1 G1 B1 B1 S1 G0 B0 B0 S0 U0 U1 "));
}

TEST_CASE("timelines: data-parallel ranks accumulate over micro-batches, and gather and scatter for each of them") {
  // Two ranks, two samples each, one at a time: what is done once a step stands behind the second's, or at its layers.
  const model m{2, 4, 1};
  auto both = [](const std::string& line) { return line + "\n" + line + "\n"; };
  // Whole gradients are added up; each layer's sum is reduced right after the last backward of it.
  CHECK(by_layer("ddp", m, 2) == both("F0 F1 B1 B1 B0 B0 F0 F1 B1 B1 R1 B0 B0 R0 U0 U1 "));
  // A layer is gathered for each forward and backward of each micro-batch, its sum reduced in the end.
  CHECK(by_layer("wsdp", m, 2) == both("G0 F0 G1 F1 G1 B1 B1 G0 B0 B0 G0 F0 G1 F1 G1 B1 B1 G0 B0 B0 R0 U0 R1 U1 "));
  // Whole sums, scattered in the end; or each micro-batch's gradient at once, of which a half is kept.
  CHECK(by_layer("zero1", m, 2) == both("F0 F1 B1 B1 B0 B0 F0 F1 B1 B1 B0 B0 S0 U0 G0 S1 U1 G1 "));
  CHECK(by_layer("zero2", m, 2) == both("F0 F1 B1 B1 S1 B0 B0 S0 F0 F1 B1 B1 S1 B0 B0 S0 U0 G0 U1 G1 "));
  CHECK(by_layer("zero3", m, 2)
        == both("G0 F0 G1 F1 G1 B1 B1 S1 G0 B0 B0 S0 G0 F0 G1 F1 G1 B1 B1 S1 G0 B0 B0 S0 U0 U1 "));
}

TEST_CASE("timelines: tensor-parallel ranks make each output and each gradient by an input whole") {
  // Behind the forward of layer 0 its output, layer 1's input, is summed (R1), behind that of 1 the model's (R2);
  // behind the backward of a layer the gradient by its input.
  CHECK(by_layer("tensor", {2, 1, 1}, 2)
        == "F0 R1 F1 R2 B1 B1 R1 B0 B0 R0 U0 U1 \n"
           "F0 R1 F1 R2 B1 B1 R1 B0 B0 R0 U0 U1 \n");
}

TEST_CASE("timelines: ranks that make columns gather them, and get theirs of each gradient by an input") {
  // Columns of layer 0's output are gathered to layer 1's input (G1), those of layer 1's to the model's output (G2);
  // behind the backward of layer 1 columns of the gradient by its input are left (S1), behind that of 0 nothing is.
  CHECK(by_layer("tensor-naive", {2, 1, 1}, 2)
        == "F0 G1 F1 G2 B1 B1 S1 B0 B0 U0 U1 \n"
           "F0 G1 F1 G2 B1 B1 S1 B0 B0 U0 U1 \n");
}

TEST_CASE("timelines: pipelines") {
  // One stage works at a time: rank 1 may begin at 1, rank 0's backward at 4.
  CHECK(by_layer("pipeline", {2, 1, 1}, 2)
        == "F0  .  .  . B0 B0 U0 \n"
           " . F1 B1 B1 U1 \n");
  // Rank r begins at r; the last rank's backwards at p - 1 + m = 6, and they come through two units later at each
  // rank before.
  CHECK(by_batch("gpipe", {3, 4, 1}, 3)
        == "F0 F1 F2 F3  .  .  .  .  .  . B0 B0 B1 B1 B2 B2 B3 B3 U0 \n"
           " . F0 F1 F2 F3  .  .  . B0 B0 B1 B1 B2 B2 B3 B3 U1 \n"
           " .  . F0 F1 F2 F3 B0 B0 B1 B1 B2 B2 B3 B3 U2 \n");
  // Rank r is p - 1 - r forwards ahead; the last one never waits from 2 on, so it ends at 2 + 4 x 3, as with GPipe.
  CHECK(by_batch("1f1b", {3, 4, 1}, 3)
        == "F0 F1 F2  .  .  .  . B0 B0 F3 B1 B1  . B2 B2  . B3 B3 U0 \n"
           " . F0 F1  .  . B0 B0 F2 B1 B1 F3 B2 B2  . B3 B3 U1 \n"
           " .  . F0 B0 B0 F1 B1 B1 F2 B2 B2 F3 B3 B3 U2 \n");
  // Two stages a rank, 0 and 2, 1 and 3: two micro-batches through the first two, then through the others.
  CHECK(by_batch("interleaved", {4, 2, 1, 2}, 2)
        == "F0 F1 F0 F1  .  .  . B0 B0 B1 B1 B0 B0 B1 B1 U0 U2 \n"
           " . F0 F1 F0 F1 B0 B0 B1 B1 B0 B0 B1 B1 U1 U3 \n");
}

TEST_CASE("timelines: zero-bubble pipelines split the backward") {
  // Gradients by inputs (I) go on at once, so rank 0's first is at 5, not 7; rank r keeps r gradients by weights (W)
  // back.
  CHECK(by_batch("zb-h1", {3, 4, 1}, 3)
        == "F0 F1 F2  .  . I0 W0 F3 I1 W1 I2 W2 I3 W3 U0 \n"
           " . F0 F1  . I0 F2 I1 W0 F3 I2 W1 I3 W2 W3 U1 \n"
           " .  . F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3 U2 \n");
  // Rank 0 is 2 (p - 1) forwards ahead: its first I, at 3, finds it busy until then, and no rank waits between first
  // and last.
  CHECK(by_batch("zb-h2", {2, 4, 1}, 2)
        == "F0 F1 F2 I0 W0 F3 I1 W1 I2 W2 I3 W3 U0 \n"
           " . F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3 U1 \n");
  // Stages 0 and 3 on rank 0, 1 and 2 on rank 1, which takes each micro-batch on at once; 18 operations each,
  // without a gap.
  CHECK(by_batch("zb-v", {4, 3, 1}, 2)
        == "F0 F1 F2 F0 I0 W0 F1 I1 W1 I0 W0 F2 I2 W2 I1 W1 I2 W2 U0 U3 \n"
           " . F0 F0 F1 F1 I0 W0 F2 I0 W0 F2 I1 W1 I1 I2 I2 W1 W2 W2 U1 U2 \n");
}

TEST_CASE("timelines: DualPipe runs two pipelines in opposite directions") {
  // Micro-batches 0 and 1 begin at rank 0, 2 and 3 at rank 1. With p = 2 there is no bubble: (p/2-1)(...) = 0. Both
  // ranks have both stages, so both sums are reduced between them.
  CHECK(by_batch("dualpipe", {2, 4, 1}, 2)
        == "F0 F2 F1 B2 B2 F3 B0 B0 B3 B3 I1 W1 R0 U0 R1 U1 \n"
           "F2 F0 F3 B0 B0 F1 B2 B2 B1 B1 I3 W3 R0 U0 R1 U1 \n");
}

TEST_CASE("timelines: combinations") {
  // Ranks 0 and 1 share stage 0, 2 and 3 stage 1, in 1F1B's order with each forward's and backward's sum after it.
  CHECK(by_batch("3d", {2, 2, 1, 1, 2, 1}, 4)
        == "F0 R1 F1 R1  .  .  . B0 B0 R0  .  . B1 B1 R0 U0 \n"
           "F0 R1 F1 R1  .  .  . B0 B0 R0  .  . B1 B1 R0 U0 \n"
           " .  . F0 R2 B0 B0 R1 F1 R2 B1 B1 R1 U1 \n"
           " .  . F0 R2 B0 B0 R1 F1 R2 B1 B1 R1 U1 \n");
  // Both ranks share positions in layer 0 and experts in layer 1, one sample after the other: attention to their own
  // keys and to each other's, to experts and back, and the way back likewise. Layer 0's sum is of both ranks'
  // positions.
  model m{2, 2, 1, 1, 1, 1};
  m.context = m.experts = 2;
  const std::string step = "A0 A0 F0 T1 F1 T2 T2 B1 B1 T1 a0 a0 a0 a0 B0 B0 ", end = "R0 U0 U1 \n";
  CHECK(by_layer("3d", m, 2) == step + step + end + step + step + end);
  // Two ranks of each of two stages share experts. There and back alternate except in the one block, layer 2's forward
  // beside layer 1's backward after it, where what goes to experts is on the second stream.
  m = {4, 8, 1, 2, 1, 2};
  m.experts = 2;
  const std::string both_ways = "F0 T1 F1 T2 F2 T3 F3 T4 F0 T1 F1 T2 T4 B3 B3 T3 B2 B2 F2 B1 B1 F3 B0 B0 T4 B3 B3 T3 "
                                "B2 B2 T2 I1 T1 I0 W1 W0 R0 R0 U0 R1 U1 R2 R2 U2 R3 U3 \n"
                                " .  .  .  .  .  .  .  .  .  .  .  .  .  .  .  .  .  . T2 T3  . T1 T4 \n";
  CHECK(by_layer("dualpipe", m, 4) == both_ways + both_ways + both_ways + both_ways);
  // Ranks 0 and 1 share stage 0's weights, and have micro-batches 0, 1 and 2, 3: GPipe with a gather before each
  // step and a scatter after each backward.
  CHECK(by_batch("pipeline-fsdp", {2, 4, 1}, 4)
        == "G0 F0 G0 F1  .  .  .  .  .  . G0 B0 B0 S0 G0 B1 B1 S0 U0 \n"
           "G0 F2 G0 F3  .  .  .  .  .  . G0 B2 B2 S0 G0 B3 B3 S0 U0 \n"
           " .  . G1 F0 G1 F1 G1 B0 B0 S1 G1 B1 B1 S1 U1 \n"
           " .  . G1 F2 G1 F3 G1 B2 B2 S1 G1 B3 B3 S1 U1 \n");
}

TEST_CASE("timelines: fsdp gathers a layer ahead and scatters beside the backward before, on a second stream") {
  auto both = [](const std::string& own, const std::string& aside) {
    return own + "\n" + aside + "\n" + own + "\n" + aside + "\n";
  };
  // Layer 1 is gathered beside F0, 2 beside F1, 1 again beside F2; the last one stays for its backward. S2 begins
  // after B2, and G0 after it. Two more units: the first gather and the last scatter.
  CHECK(by_layer("fsdp", {3, 2, 1}, 2)
        == both(" . F0 F1 F2 B2 B2 B1 B1 B0 B0  . U2 U1 U0 ", "G0 G1 G2 G1  .  . S2 G0 S1  . S0 "));
  // Nothing ahead: what zero3 does, but that a scatter and the next gather go one behind the other there.
  model m{3, 2, 1};
  m.prefetch = 0;
  CHECK(by_layer("fsdp", m, 2)
        == both(" . F0  . F1  . F2 B2 B2  .  . B1 B1  .  . B0 B0  . U2 U1 U0 ",
                "G0  . G1  . G2  .  .  . S2 G1  .  . S1 G0  .  . S0 "));
  // Two ahead: all three are gathered in one go.
  m.prefetch = 2;
  CHECK(by_layer("fsdp", m, 2)
        == both(" . F0 F1 F2 B2 B2 B1 B1 B0 B0  . U2 U1 U0 ", "G0 G1 G2 G1 G0  . S2  . S1  . S0 "));
}

TEST_CASE("timelines: hsdp sums shards over its groups behind their scatters") {
  // Four ranks, groups of two: R1 behind S1, when B0 has ended and S1 is looked for.
  std::string expected;
  for (int rank = 0; rank < 4; ++rank)
    expected += " . F0 F1 B1 B1 B0 B0  .  . U1 U0 \nG0 G1 G0  .  . S1  . R1 S0 R0 \n";
  CHECK(by_layer("hsdp", {2, 4, 1}, 4) == expected);
}

TEST_CASE("timelines: zero1-overlap gathers beside the forward and scatters beside the backward") {
  CHECK(by_layer("zero1-overlap", {2, 2, 1, 1}, 2)
        == " . F0 F1 B1 B1 B0 B0 U1 U0 \n"
           "G0 G1  .  .  . S1  . S0 \n"
           " . F0 F1 B1 B1 B0 B0 U1 U0 \n"
           "G0 G1  .  .  . S1  . S0 \n");
}

TEST_CASE("timelines: keys go around in a ring beside attention, or are gathered before it") {
  // A layer, two ranks that share a sample's positions: attention to a rank's own keys, then to those that came.
  // Hops of a unit each, sent and received: on the way there the second attention waits for them, on the way back the
  // keys come beside the first one, the gradient by them beside the second; then it goes home.
  const std::string own = "A0  . A0 F0 a0 a0 a0 a0  .  . B0 B0 R0 U0 \n", aside = ">0 <0  .  . >0 <0 >0 <0 >0 <0 \n";
  CHECK(timeline("context", {1, 1, 1}, 2, true, 1) == own + aside + own + aside);
  CHECK(by_layer("context-gather", {1, 1, 1}, 2)
        == "G0 A0 F0 G0 a0 a0 S0 B0 B0 R0 U0 \n"
           "G0 A0 F0 G0 a0 a0 S0 B0 B0 R0 U0 \n");
}

TEST_CASE("timelines: positions are on their way to experts and back while the other micro-batch is computed") {
  // Layer 1 is of experts. Two micro-batches a rank: T1 takes layer 1's inputs there, T2 brings its outputs back; the
  // first one's starts after its F0, beside the second's F0. No other rank has a rank's experts, so only layer 0's
  // gradient is summed.
  CHECK(by_layer("expert", {2, 4, 1}, 2)
        == "F0 F0 F1 F1  .  . B1 B1 B1 B1 B0 B0 B0 B0 R0 U0 U1 \n"
           " . T1 T1 T2 T2 T2 T2  . T1  . T1 \n"
           "F0 F0 F1 F1  .  . B1 B1 B1 B1 B0 B0 B0 B0 R0 U0 U1 \n"
           " . T1 T1 T2 T2 T2 T2  . T1  . T1 \n");
}
