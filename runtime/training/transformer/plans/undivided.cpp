#include "runtime/training/transformer/plans/undivided.hpp"

#include "runtime/training/transformer/plans/plan_shapes.hpp"

#include <fmt/format.h>

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
    const auto& t = filter_.tensor;
    check("tensor", t, {m_.heads, fmt::format("the {} attention heads", m_.heads)});
    if (t.least == t.most && m_.key_value_heads % t.least != 0 && t.least % m_.key_value_heads != 0)
      found_.push_back(fmt::format("--tensor {}: {} does not divide the {} heads of keys and values, nor is it a "
                                   "multiple of them",
                                   t.least, t.least, m_.key_value_heads));
    if (m_.has_dense_layers())
      check("tensor", t, {m_.width, fmt::format("the feed-forward width of {}", m_.width)});
    check("tensor", t,
          {m_.experts.shared_width, fmt::format("the shared experts' width of {}", m_.experts.shared_width)});
    check("tensor", t, {m_.linear.key_heads, fmt::format("the {} heads of linear attention", m_.linear.key_heads)});
    check("tensor", t, devices());
    if (filter_.context.least > 1) {
      check("context", filter_.context,
            {m_.sequence, fmt::format("the {} positions of a sequence, of which each rank has two parts", m_.sequence)},
            2);
      check("context", filter_.context, devices());
    }
    if (filter_.pipeline.least > m_.layers)
      found_.push_back(fmt::format("--pipeline {}: {} stages are more than the {} layers", text_of(filter_.pipeline),
                                   filter_.pipeline.least, m_.layers));
    check("pipeline", filter_.pipeline, devices());
    check("expert", filter_.expert, {m_.experts.count, fmt::format("the {} experts of a layer", m_.experts.count)});
    check("expert", filter_.expert, devices());
    check("data", filter_.data, batch());
    check("data", filter_.data, devices());
  }

  void check_micro_batches() {
    const auto& all = filter_.micro_batches;
    const uint32_t data = filter_.data.least == filter_.data.most ? filter_.data.least : 1;
    if (all.empty() || std::ranges::any_of(all, [&](auto x) { return asked_.global_batch / data % x == 0; }))
      return;
    for (auto x : all)
      if (asked_.global_batch % x != 0)
        found_.push_back(fmt::format("--micro-batch {}: {} does not divide {}", x, x, batch().text));
      else
        found_.push_back(
          fmt::format("--micro-batch {}: {} does not divide the {} sequences of each of {} data-parallel "
                      "ranks",
                      x, x, asked_.global_batch / data, data));
  }

  /// Degrees that are given, one number each, together; and what they leave for data.
  void check_product() {
    uint64_t product = 1;
    bool all_given = true;
    std::string options, numbers;
    for (auto [name, range] : {std::pair{"tensor", &filter_.tensor},
                               {"context", &filter_.context},
                               {"pipeline", &filter_.pipeline},
                               {"data", &filter_.data}}) {
      if (range->least != range->most) {
        all_given = all_given && range == &filter_.data;
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
    if (filter_.data.least != filter_.data.most && all_given && asked_.global_batch % left != 0)
      found_.push_back(fmt::format("{}: that leaves {} / {} = {} data-parallel ranks, and {} does not divide {}",
                                   options, asked_.devices, product, left, left, batch().text));
    else if (filter_.data.least == filter_.data.most && all_given && left != 1)
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
        found_.push_back(
          fmt::format("{} GPUs are a multiple of {}, which divides neither the {} attention heads nor {} "
                      "nor the {} positions, and is more than the {} layers",
                      asked_.devices, q, m_.heads, batch().text, m_.sequence, m_.layers));
    }
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
