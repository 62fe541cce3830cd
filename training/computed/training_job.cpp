#include "training/computed/training_job.hpp"

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/schedule/collective.hpp"
#include "training/computed/model_parts.hpp"
#include "training/data/mixed_bits.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster::training {

namespace {

/// A hash of a place, as a pseudo-random number.
uint64_t mixed(uint64_t x) {
  return split_mix{x}.next();
}

/// In [-1, 1).
double spread(uint64_t bits) {
  return static_cast<double>(bits >> 11) * 0x1p-52 - 1;
}

uint64_t ceiling(uint64_t x, uint64_t by) {
  return (x + by - 1) / by;
}

/// Adds a parameter's runs on a rank: one a row if it is cut by columns.
void add_runs(std::vector<parameter_run>& all, uint32_t index, const parameter& whole, shard tensor, uint64_t local) {
  const auto mine = part_of(whole, tensor);
  if (whole.tensor != cut::columns || tensor.whole()) {
    const auto first_row = whole.tensor == cut::rows ? block_of({}, whole.rows, tensor.count, tensor.index).offset : 0;
    all.push_back({index, local, first_row * whole.columns, mine.elements()});
    return;
  }
  const auto first = block_of({}, whole.columns, tensor.count, tensor.index).offset;
  for (uint64_t row = 0; row < whole.rows; ++row)
    all.push_back({index, local + row * mine.columns, row * whole.columns + first, mine.columns});
}

} // namespace

caf::expected<model_layers> layers_for(const known_strategy& which, model_layers layers) {
  for (size_t l = 0; which.by_columns && l < layers.size(); ++l) {
    auto cut = layers[l]->by_columns();
    if (!cut)
      return invalid(fmt::format("{} cuts layers by the columns of their outputs, and layer {}, {}, cannot be cut like "
                                 "that: linear layers can",
                                 which.name, l, layers[l]->name()));
    layers[l] = std::move(cut);
  }
  return layers;
}

uint64_t whole_elements(const training_job& job, const value_tag& x) {
  if (!of_activation(x.kind)) {
    const auto arrays = x.kind == value_kind::optimizer_state ? job.update.state_arrays() : 1;
    return arrays * job.layers[x.layer]->elements(x.tensor);
  }
  const auto& layers = job.layers;
  return x.samples.count() * (x.layer < layers.size() ? layers[x.layer]->inputs() : layers.back()->outputs());
}

uint64_t elements(const training_job& job, const value_tag& x) {
  if (of_activation(x.kind) && x.has == form::columns)
    return column_shards{job, x, x.part.count}.bytes_each() / bytes_of(job.as);
  ensure(x.part.count > 0, "a value is cut into shards");
  const auto arrays = x.kind == value_kind::optimizer_state ? std::max(job.update.state_arrays(), 1u) : 1;
  return arrays * ceiling(whole_elements(job, x) / arrays, x.part.count);
}

value_tag scattered(const pending& x) {
  auto result = x.argument;
  result.part = {0, x.among.count};
  const bool in_columns = form::columns == (x.what == op::reduce_scatter ? x.results[0].has : result.has);
  if (of_activation(result.kind))
    result.has = in_columns ? form::columns : form::sequence;
  return result;
}

value_tag gathered(const pending& x) {
  auto result = x.argument;
  result.part = {};
  result.has = form::whole;
  return result;
}

uint64_t count_of(const training_job& job, const pending& x) {
  const bool cuts = x.what == op::all_gather || x.what == op::reduce_scatter;
  return elements(job, cuts ? scattered(x) : x.argument);
}

std::vector<parameter_run> parameter_runs(const layer& of, shard tensor, shard part) {
  std::vector<parameter_run> all, result;
  uint64_t local = 0;
  for (uint32_t i = 0; i < of.parameters().size(); ++i) {
    add_runs(all, i, of.parameters()[i], tensor, local);
    local += part_of(of.parameters()[i], tensor).elements();
  }
  ensure(part.count > 0 && tensor.count > 0, "a layer is cut into shards");
  const auto each = ceiling(local, part.count), begin = each * part.index, end = begin + each;
  for (auto& x : all) {
    const auto from = std::max(x.local, begin), to = std::min(x.local + x.count, end);
    if (from < to)
      result.push_back({x.parameter, from - begin, x.global + from - x.local, to - from});
  }
  return result;
}

void set_first_weights(const training_job& job, uint32_t layer, shard tensor, shard part, std::byte* w) {
  const auto& of = *job.layers[layer];
  for (auto& run : parameter_runs(of, tensor, part)) {
    const auto& its = of.parameters()[run.parameter];
    const auto place = mixed(mixed(mixed(job.seed) + layer) + run.parameter);
    for (uint64_t i = 0; i < run.count; ++i) {
      const auto x = its.mean + its.bound * spread(mixed(place + run.global + i));
      if (job.as == precision::float32)
        reinterpret_cast<float*>(w)[run.local + i] = static_cast<float>(x);
      else
        reinterpret_cast<double*>(w)[run.local + i] = x;
    }
  }
}

namespace {

template <class T>
void approach(double momentum, uint64_t count, std::byte* x, const std::byte* to) {
  auto* values = reinterpret_cast<T*>(x);
  auto* latest = reinterpret_cast<const T*>(to);
  for (uint64_t i = 0; i < count; ++i)
    values[i] += static_cast<T>(momentum) * (latest[i] - values[i]);
}

} // namespace

void update_weights(const training_job& job, const value_tag& what, uint64_t number, optimizer::before from,
                    std::byte* w, std::byte* state, const std::byte* gradient) {
  const auto& of = *job.layers[what.layer];
  const auto each = bytes_of(job.as);
  std::vector<std::byte> statistics; // the optimizer overwrites them
  const auto keeps = std::ranges::any_of(of.parameters(), &parameter::is_statistic);
  const auto runs = keeps ? parameter_runs(of, what.tensor, what.part) : std::vector<parameter_run>{};
  for (auto& run : runs) {
    const auto& its = of.parameters()[run.parameter];
    if (!its.is_statistic)
      continue;
    const auto *old = from.w + run.local * each, *latest = gradient + run.local * each;
    statistics.insert(statistics.end(), old, old + run.count * each);
    auto* at = statistics.data() + statistics.size() - run.count * each;
    if (job.as == precision::float32)
      approach<float>(its.momentum, run.count, at, latest);
    else
      approach<double>(its.momentum, run.count, at, latest);
  }
  job.update.update(job.as, number, elements(job, what), from, w, state, gradient);
  ensure(number > 0, "steps of an optimizer are counted from 1");
  const auto* next = statistics.data();
  for (auto& run : runs)
    if (of.parameters()[run.parameter].is_statistic) {
      std::copy_n(next, run.count * each, w + run.local * each);
      next += run.count * each;
    }
}

} // namespace ringmaster::training
