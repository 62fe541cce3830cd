#include "tools/planning/plan_options.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/text/comma_list.hpp"
#include "runtime/text/quantity_parse.hpp"
#include "runtime/text/quantity_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace ringmaster {

using namespace training;

namespace {

constexpr std::array schedules{pipeline_schedule::one_f_one_b,
                               pipeline_schedule::interleaved_1f1b,
                               pipeline_schedule::all_forwards_first,
                               pipeline_schedule::zb_h1,
                               pipeline_schedule::zb_h2,
                               pipeline_schedule::zb_v,
                               pipeline_schedule::dualpipe};

std::vector<std::string> choices() {
  std::vector<std::string> all;
  for (auto x : schedules)
    all.emplace_back(name_of(x));
  all.insert(all.end(), shardings.begin(), shardings.end());
  return all;
}

std::optional<uint32_t> whole(std::string_view text) {
  uint32_t x = 0;
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (problem != std::errc{} || end != text.data() + text.size() || x == 0)
    return std::nullopt;
  return x;
}

caf::expected<std::vector<uint32_t>> parse_numbers(const std::string& text) {
  std::vector<uint32_t> result;
  for (auto part : comma_list(text)) {
    auto x = whole(part);
    if (!x)
      return invalid(fmt::format("\"{}\" is no list of whole numbers above 0, such as 1,2,4", text));
    result.push_back(*x);
  }
  return result;
}

caf::expected<training_framework> parse_framework(const std::string& text) {
  using enum training_framework;
  for (auto x : {any, megatron, torchtitan})
    if (name_of(x) == text)
      return x;
  return invalid(fmt::format("\"{}\" is none of any, megatron and torchtitan", text));
}

/// "15T", "300B", "1e12".
caf::expected<double> parse_amount(const std::string& text) {
  double x = 0;
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), x);
  const std::string_view unit{end, text.data() + text.size()};
  constexpr std::pair<std::string_view, double> units[] = {{"", 1}, {"K", 1e3}, {"M", 1e6}, {"B", 1e9}, {"T", 1e12}};
  auto at = std::ranges::find(units, unit, &std::pair<std::string_view, double>::first);
  if (problem != std::errc{} || at == std::end(units) || !(x > 0) || x * at->second > 1e18)
    return invalid(fmt::format("\"{}\" is no number of tokens, such as 15T or 300B", text));
  return x * at->second;
}

caf::expected<double> parse_price(const std::string& text) {
  const auto x = decimal_in(text);
  if (!x || !(*x >= 0) || *x > 1e6)
    return invalid(fmt::format("\"{}\" is no price of an hour, such as 2.50", text));
  return *x;
}

} // namespace

caf::expected<number_range> parse_range(const std::string& text) {
  const auto dots = text.find("..");
  const auto first = text.substr(0, dots);
  const auto second = dots == text.npos ? first : text.substr(dots + 2);
  number_range x;
  auto from = whole(first), to = whole(second);
  if ((!from && !(dots != text.npos && first.empty())) || (!to && !(dots != text.npos && second.empty()))
      || (first.empty() && second.empty()))
    return invalid(fmt::format("\"{}\" is no range, such as 4, 4..8, 4.. or ..8", text));
  x.least = from.value_or(x.least);
  x.most = to.value_or(x.most);
  if (x.least > x.most)
    return invalid(fmt::format("\"{}\" is an empty range", text));
  return x;
}

void plan_filter_options::add_to(option_table& table) {
  auto add_range = [&](const char* name, number_range& target, const char* what) {
    table
      .value(name,
             [this, name, &target](const std::string& text) -> caf::error {
               TRY(x, parse_range(text));
               target = *x;
               range_given_ = name;
               return caf::none;
             })
      .says("A..B", what);
  };
  add_range("--tensor", filter.tp, "tensor-parallel ranks");
  add_range("--context", filter.cp, "ranks that share a sequence");
  add_range("--expert", filter.ep, "ranks that share a layer's experts");
  add_range("--data", filter.dp, "data-parallel ranks");
  add_range("--pipeline", filter.pp, "stages");
  add_range("--chunks", filter.chunks, "chunks of a stage: 2 or more interleaved, 2 in zb-v and dualpipe, else 1");
  table.parsed("--micro-batch", filter.micro_batches, parse_numbers).says("B,...", "samples of a micro-batch");
  table.words("--schedule", filter.only, choices())
    .says("NAME,...",
          "only these schedules and shardings; beside a schedule fsdp and hsdp are to be named, too: {words}");
  table.words("--exclude", filter.excluded, choices()).says("NAME,...", "none of these");
  table.parsed("--framework", filter.framework, parse_framework)
    .says("F", "{words}: only plans that it can run, and the best one as its launch options")
    .offers({"any", "megatron", "torchtitan"})
    .otherwise("any");
}

std::string plan_filter_options::given() const {
  return !range_given_.empty()                         ? range_given_
         : !filter.micro_batches.empty()               ? "--micro-batch"
         : !filter.only.empty()                        ? "--schedule"
         : !filter.excluded.empty()                    ? "--exclude"
         : filter.framework != training_framework::any ? "--framework"
                                                       : "";
}

caf::error plan_filter_options::check(const language_model& trained) const {
  if (auto& x = filter.ep; trained.experts.count == 0 && x.least > 1)
    return invalid(fmt::format("--expert {}{} is of models with experts, such as deepseek-v3; {} has none", x.least,
                               x.most == x.least      ? ""
                               : x.most == UINT32_MAX ? ".."
                                                      : fmt::format("..{}", x.most),
                               trained.name));
  const bool any = std::ranges::any_of(schedules, [&](auto schedule) {
    return std::ranges::any_of(shardings, [&](auto sharding) {
      return filter.takes(schedule, sharding, false) || filter.takes(pipeline_schedule::one_f_one_b, sharding, true);
    });
  });
  if (!any)
    return invalid(fmt::format("--exclude {} leaves nothing{}", fmt::join(filter.excluded, ","),
                               filter.only.empty() ? ""
                                                   : fmt::format(" of --schedule {}", fmt::join(filter.only, ","))));
  return caf::none;
}

void plan_memory_options::add_to(option_table& table) {
  table.word("--gradients", gradients, {"fp32", "bf16"})
    .says("F", "what gradients are added up and reduced in: {words}")
    .otherwise("fp32");
  table.word("--optimizer-states", states, {"fp32", "bf16", "fp8"})
    .says("F", "what the optimizer's two moments are kept in: {words}")
    .otherwise("fp32");
  table.words("--offload", offloaded, {"optimizer", "activations"})
    .says("WHAT,...", "{words}: kept in the host's memory, over its link");
  table.bytes("--reserve", reserved)
    .says("SIZE", "of a GPU's memory, what is left free: its context, NCCL's buffers, fragmentation")
    .otherwise("the system's, 4 GB");
}

caf::error plan_memory_options::reserve_in(gpu_system& on) const {
  if (!reserved)
    return caf::none;
  if (static_cast<double>(*reserved) >= on.memory_bytes)
    return invalid(fmt::format("--reserve {} leaves nothing of the {:.1f} GB of {}", size_text(*reserved),
                               on.memory_bytes / 1e9, on.name));
  on.reserved_bytes = static_cast<double>(*reserved);
  return caf::none;
}

void plan_memory_options::apply_to(plan_filter& filter) const {
  filter.gradient_bytes = gradients == "fp32" ? 4 : 2;
  filter.state_bytes = states == "fp32" ? 12 : states == "bf16" ? 8 : 6; // with weights in float32
  for (auto& x : offloaded)
    (x == "optimizer" ? filter.offloads_states : filter.offloads_activations) = true;
}

void plan_run_options::add_to(option_table& table) {
  table.parsed("--tokens", tokens, parse_amount).says("N", "what the run trains on, such as 15T: days, GPU-hours");
  table.parsed("--price", price, parse_price).says("X", "of a GPU and an hour: the run's cost");
}

} // namespace ringmaster
