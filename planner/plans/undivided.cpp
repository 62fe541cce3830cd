#include "planner/plans/undivided.hpp"

#include "planner/plans/plan_shapes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace ringmaster::training {

namespace {

/// What a number must divide.
struct divided {
  uint64_t whole = 0;
  std::string text; ///< "the 32 attention heads"
};

class division_check {
public:
  explicit division_check(const plan_question& asked) : asked_(asked), m_(asked.trained), filter_(asked.filter) {}

  std::vector<std::string> sentences() {
    check_degrees();
    if (found_.empty())
      check_micro_batches();
    if (found_.empty())
      check_product();
    if (found_.empty())
      check_devices();
    if (found_.empty())
      check_degrees_together();
    check_framework();
    return std::move(found_);
  }

private:
  divided devices() const { return {asked_.devices, fmt::format("the {} GPUs", asked_.devices)}; }
  divided batch() const {
    return {asked_.global_batch, fmt::format("the {} sequences of the global batch", asked_.global_batch)};
  }

  static bool is_given(const number_range& x) { return x.least > 1 || x.most < UINT32_MAX; }
  static std::string text_of(const number_range& x) {
    return x.least == x.most      ? fmt::to_string(x.least)
           : x.most == UINT32_MAX ? fmt::format("{}..", x.least)
                                  : fmt::format("{}..{}", x.least, x.most);
  }

  /// Where none of the range, each `times` as many, divides what it must.
  void check(std::string_view option, const number_range& range, const divided& x, uint32_t times = 1) {
    if (!is_given(range) || x.whole == 0)
      return;
    for (uint64_t n = range.least; n <= std::min<uint64_t>(range.most, x.whole); ++n)
      if (x.whole % (times * n) == 0)
        return;
    const auto by = times == 1 ? "" : fmt::format(" times {}", times);
    found_.push_back(range.least == range.most
                       ? fmt::format("--{} {}: {} does not divide {}", option, range.least, range.least * times, x.text)
                       : fmt::format("--{} {}: no number from there{} divides {}", option, text_of(range), by, x.text));
  }

  void check_degrees() {
    const auto& t = filter_.tp;
    check("tensor", t, {m_.heads, fmt::format("the {} attention heads", m_.heads)});
    if (t.least == t.most && m_.key_value_heads % t.least != 0 && t.least % m_.key_value_heads != 0)
      found_.push_back(
        fmt::format("--tensor {}: {} does not divide the {} heads of keys and values, nor is it a multiple of them",
                    t.least, t.least, m_.key_value_heads));
    if (m_.has_dense_layers())
      check("tensor", t, {m_.width, fmt::format("the feed-forward width of {}", m_.width)});
    check("tensor", t,
          {m_.experts.shared_width, fmt::format("the shared experts' width of {}", m_.experts.shared_width)});
    check("tensor", t, {m_.linear.key_heads, fmt::format("the {} heads of linear attention", m_.linear.key_heads)});
    check("tensor", t, devices());
    if (filter_.cp.least > 1) {
      check("context", filter_.cp,
            {m_.sequence, fmt::format("the {} positions of a sequence, of which each rank has two parts", m_.sequence)},
            2);
      check("context", filter_.cp, devices());
    }
    if (filter_.pp.least > m_.layers)
      found_.push_back(fmt::format("--pipeline {}: {} stages are more than the {} layers", text_of(filter_.pp),
                                   filter_.pp.least, m_.layers));
    check("pipeline", filter_.pp, devices());
    check("expert", filter_.ep, {m_.experts.count, fmt::format("the {} experts of a layer", m_.experts.count)});
    check("expert", filter_.ep, devices());
    check("data", filter_.dp, batch());
    check("data", filter_.dp, devices());
  }

  void check_micro_batches() {
    const auto& all = filter_.micro_batches;
    const uint32_t data = filter_.dp.least == filter_.dp.most ? filter_.dp.least : 1;
    if (all.empty() || std::ranges::any_of(all, [&](auto x) { return asked_.global_batch / data % x == 0; }))
      return;
    for (auto x : all)
      if (asked_.global_batch % x != 0)
        found_.push_back(fmt::format("--micro-batch {}: {} does not divide {}", x, x, batch().text));
      else
        found_.push_back(
          fmt::format("--micro-batch {}: {} does not divide the {} sequences of each of {} data-parallel ranks", x, x,
                      asked_.global_batch / data, data));
  }

  /// Degrees that are given, one number each, together; and what they leave for data.
  void check_product() {
    uint64_t product = 1;
    bool all_given = true;
    std::string options, numbers;
    for (
      auto [name, range] :
      {std::pair{"tensor", &filter_.tp}, {"context", &filter_.cp}, {"pipeline", &filter_.pp}, {"data", &filter_.dp}}) {
      if (range->least != range->most) {
        all_given = all_given && range == &filter_.dp;
        continue;
      }
      product *= range->least;
      options += fmt::format("{}--{} {}", options.empty() ? "" : " ", name, range->least);
      numbers += fmt::format("{}{}", numbers.empty() ? "" : " x ", range->least);
    }
    if (options.empty())
      return;
    if (asked_.devices % product != 0) {
      found_.push_back(fmt::format("{}: {} = {} does not divide the {} GPUs", options, numbers, product,
                                   asked_.devices));
      return;
    }
    const auto left = asked_.devices / product;
    if (filter_.dp.least != filter_.dp.most && all_given && asked_.global_batch % left != 0)
      found_.push_back(fmt::format("{}: that leaves {} / {} = {} data-parallel ranks, and {} does not divide {}",
                                   options, asked_.devices, product, left, left, batch().text));
    else if (filter_.dp.least == filter_.dp.most && all_given && left != 1)
      found_.push_back(fmt::format("{}: that is {} GPUs of {}", options, product, asked_.devices));
  }

  /// A prime factor of the devices that nothing can have.
  void check_devices() {
    auto left = asked_.devices;
    for (uint32_t q = 2; left > 1; ++q) {
      if (uint64_t{q} * q > left)
        q = left;
      if (left % q != 0)
        continue;
      while (left % q == 0)
        left /= q;
      const bool tensor = m_.heads % q == 0, data = asked_.global_batch % q == 0, context = m_.sequence % (2 * q) == 0;
      if (!tensor && !data && !context && q > m_.layers)
        found_.push_back(fmt::format("{} GPUs are a multiple of {}, which divides neither the {} attention heads nor "
                                     "{} nor the {} positions, and is more than the {} layers",
                                     asked_.devices, q, m_.heads, batch().text, m_.sequence, m_.layers));
    }
  }

  /// Where no product of the degrees that are possible one by one is the number of devices.
  void check_degrees_together() {
    const auto tensor = tensor_degrees_of(asked_), context = context_degrees_of(asked_), data = data_degrees_of(asked_),
               pipeline = pipeline_degrees_of(asked_);
    for (auto t : tensor)
      for (auto c : context)
        for (auto d : data)
          if (const auto product = uint64_t{t} * c * d;
              asked_.devices % product == 0
              && std::ranges::count(pipeline, static_cast<uint32_t>(asked_.devices / product)) > 0)
            return;
    const auto all = divisors_of(asked_.devices);
    const auto factors = factors_of(asked_.devices);
    found_.push_back(fmt::format(
      "{} GPUs are TP x CP x DP x PP{}. Of the divisors of {} ({}) TP can be {} ({} attention heads), CP {} ({} "
      "positions), DP {} ({} sequences), PP {} ({} layers): no product of these is {}",
      asked_.devices, factors.size() > 1 ? fmt::format(", and {} = {}", asked_.devices, fmt::join(factors, " x ")) : "",
      asked_.devices, numbers_text(all, "and"), possible(tensor), m_.heads, possible(context), m_.sequence,
      possible(data), asked_.global_batch, possible(pipeline), m_.layers, asked_.devices));
  }

  static std::vector<uint32_t> factors_of(uint32_t x) {
    std::vector<uint32_t> result;
    for (uint32_t q = 2; q <= x / q; ++q)
      for (; x % q == 0; x /= q)
        result.push_back(q);
    if (x > 1)
      result.push_back(x);
    return result;
  }

  /// "1, 3, 7 and 9"; of many the first and the last.
  static std::string numbers_text(const std::vector<uint32_t>& all, std::string_view last_word) {
    constexpr size_t shown = 8;
    if (all.size() > shown)
      return fmt::format("{}, ... {} {}", fmt::join(all.begin(), all.begin() + shown - 1, ", "), last_word, all.back());
    if (all.size() == 1)
      return fmt::to_string(all.front());
    return fmt::format("{} {} {}", fmt::join(all.begin(), all.end() - 1, ", "), last_word, all.back());
  }

  static std::string possible(const std::vector<uint32_t>& all) {
    return all.empty()       ? "none of them"
           : all.size() == 1 ? fmt::format("only {}", all.front())
                             : numbers_text(all, "or");
  }

  /// What is asked for that the framework does not have.
  void check_framework() {
    const auto framework = filter_.framework;
    if (framework == training_framework::any)
      return;
    const std::string_view name = framework == training_framework::megatron ? "Megatron Core" : "torchtitan";
    check_schedules(framework, name);
    check_shardings(framework, name);
    auto lacks = [&](std::string_view option, std::string_view what, void (*ask)(training_setting&)) {
      auto how = plain_setting(framework);
      ask(how);
      if (!can_run(framework, how))
        found_.push_back(fmt::format("{}: {} has no {}", option, name, what));
    };
    if (filter_.offloads_activations)
      lacks("--offload activations", "off-loading of activations", [](auto& x) { x.offloads_activations = true; });
    if (filter_.offloads_states)
      lacks("--offload optimizer", "off-loading of the optimizer's states alone",
            [](auto& x) { x.offloads_states = true; });
    if (filter_.attention == attention_kernel::unfused)
      lacks("--attention unfused", "unfused attention", [](auto& x) { x.attention = attention_kernel::unfused; });
    if (filter_.state_bytes != training_setting{}.state_bytes)
      lacks("--optimizer-states", "optimizer states in less than fp32", [](auto& x) { x.state_bytes = 8; });
    if (filter_.computed_in == number_format::nvfp4)
      lacks("--precision nvfp4", "nvfp4", [](auto& x) { x.computed_in = number_format::nvfp4; });
  }

  /// One stage of two data-parallel ranks, as any framework can run it.
  static training_setting plain_setting(training_framework framework) {
    training_setting how;
    how.set_degrees(1, 2, 1);
    how.zero = framework == training_framework::megatron ? 1 : 2;
    return how;
  }

  /// Where some schedules are named, and the framework has none of them.
  void check_schedules(training_framework framework, std::string_view name) {
    std::vector<std::string_view> had, lacking;
    for (size_t i = 0; i < pipeline_schedules; ++i) {
      auto how = plain_setting(framework);
      how.pp = 2;
      how.schedule = static_cast<pipeline_schedule>(i);
      const auto schedule = name_of(how.schedule);
      const bool has = can_run(framework, how), named = std::ranges::count(filter_.only, schedule) > 0;
      if (has && named)
        return;
      if (has)
        had.push_back(schedule);
      else if (named)
        lacking.push_back(schedule);
    }
    if (!lacking.empty())
      found_.push_back(fmt::format("--schedule {}: {} has no {}; its schedules are {}", fmt::join(lacking, ","), name,
                                   fmt::join(lacking, " and no "), fmt::join(had, ", ")));
  }

  /// The same of shardings.
  void check_shardings(training_framework framework, std::string_view name) {
    std::vector<std::string_view> lacking;
    for (size_t i = 0; i < shardings.size(); ++i) {
      if (std::ranges::count(filter_.only, shardings[i]) == 0)
        continue;
      auto how = plain_setting(framework);
      how.zero = shardings[i].starts_with("zero") ? static_cast<uint32_t>(i) : 0;
      how.shard_ranks = shardings[i].starts_with("zero") ? 0 : 2;
      if (can_run(framework, how))
        return;
      lacking.push_back(shardings[i]);
    }
    if (!lacking.empty())
      found_.push_back(fmt::format("--schedule {}: {} has no {}", fmt::join(lacking, ","), name,
                                   fmt::join(lacking, " and no ")));
  }

  const plan_question& asked_;
  const language_model& m_;
  const plan_filter& filter_;
  std::vector<std::string> found_;
};

} // namespace

std::vector<std::string> undivided_of(const plan_question& asked) {
  return division_check{asked}.sentences();
}

} // namespace ringmaster::training
