#include "tools/planning/plan_text.hpp"

#include "tools/training/transformer_options.hpp"

#include <fmt/format.h>

namespace ringmaster {

using namespace training;

namespace {

std::vector<std::pair<std::string, double>> communication_by_part(const communication_parts& x) {
  return {{"tensor", x.layers.tensor},
          {"context", x.layers.context},
          {"experts", x.layers.experts},
          {"stages", x.hops},
          {"gradients", x.gradients}};
}

} // namespace

std::string plan_header() {
  return "   t    c    d    e    p  micro   v  schedule    recompute  seq  sharding       time      MFU     memory";
}

std::string sharding_of(const parallel_setting& how) {
  if (how.shard == 0)
    return fmt::format("zero{}", how.zero);
  return how.shard == how.shape.data * how.context ? "fsdp" : fmt::format("hsdp {}", how.shard);
}

std::string plan_line(const planned& x) {
  auto& how = x.how;
  return fmt::format(
    "{:>4} {:>4} {:>4} {:>4} {:>4} {:>6} {:>3}  {:<11} {:<10} {:<4} {:<8} {:>8.3f} s {:>6.2f} % {:>7.1f} GB",
    how.shape.tensor, how.context, how.shape.data, how.expert, how.shape.pipeline, how.micro_batch, how.chunks,
    name_of(how.schedule), name_of(how.again), how.sequence_parallel ? "yes" : "no", sharding_of(how), x.cost.seconds,
    100 * x.cost.mfu, x.cost.memory_bytes / giga);
}

std::vector<std::pair<std::string, double>> seconds_by_part(const iteration_estimate& x) {
  std::vector<std::pair<std::string, double>> result{
    {"compute", x.seconds - x.bubble - x.update - x.offload - x.exposed.sum()}};
  for (auto& part : communication_by_part(x.exposed))
    result.push_back(part);
  result.emplace_back("bubble", x.bubble);
  result.emplace_back("optimizer", x.update);
  result.emplace_back("off-loading", x.offload);
  return result;
}

std::vector<std::pair<std::string, double>> hidden_by_part(const iteration_estimate& x) {
  return communication_by_part(x.hidden);
}

std::vector<std::pair<std::string, double>> bytes_by_part(const memory_parts& x) {
  return {{"weights", x.weights},         {"gradients", x.gradients}, {"optimizer", x.optimizer},
          {"activations", x.activations}, {"buffers", x.buffers},     {"logits", x.logits}};
}

} // namespace ringmaster
