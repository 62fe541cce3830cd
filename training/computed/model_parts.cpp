#include "training/computed/model_parts.hpp"

#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/schedule/collective.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace ringmaster::training {

namespace {

std::vector<parameter_run> runs_of(const training_job& job, const kept_part& x) {
  auto runs = parameter_runs(*job.layers[x.layer], x.tensor, x.part);
  std::ranges::sort(runs, {}, [](auto& y) { return std::pair{y.parameter, y.global}; });
  return runs;
}

/// Calls `f` with each range that the two lists of runs, sorted by their place in the layer, have in common: its start
/// in either list, and the number of elements.
template <class Function>
void for_common(const std::vector<parameter_run>& a, const std::vector<parameter_run>& b, Function f) {
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    auto &x = a[i], &y = b[j];
    const auto from = std::max(x.global, y.global), to = std::min(x.global + x.count, y.global + y.count);
    if (x.parameter == y.parameter && from < to)
      f(x.local + from - x.global, y.local + from - y.global, to - from);
    if (std::pair{x.parameter, x.global + x.count} < std::pair{y.parameter, y.global + y.count})
      ++i;
    else
      ++j;
  }
}

uint32_t arrays_of(const training_job& job, const kept_part& x) {
  return x.kind == value_kind::optimizer_state ? job.update.state_arrays() : 1;
}

} // namespace

uint64_t bytes_of(const training_job& job, const kept_part& x) {
  return elements(job, tag_of(x)) * bytes_of(job.as);
}

uint64_t model_bytes(const training_job& job) {
  uint64_t result = 0;
  for (uint32_t layer = 0; layer < job.layers.size(); ++layer)
    for (auto kind : {value_kind::weight, value_kind::optimizer_state})
      result += bytes_of(job, whole_part(kind, layer));
  return result;
}

void copy_common(const training_job& job, const kept_part& from, std::span<const std::byte> source, const kept_part& to,
                 std::span<std::byte> target) {
  const auto each = bytes_of(job.as), arrays = uint64_t{arrays_of(job, from)};
  if (arrays == 0)
    return;
  const auto a = runs_of(job, from), b = runs_of(job, to);
  ensure(from.kind == to.kind && from.layer == to.layer, "parts in common are of one layer and kind");
  const auto from_array = source.size() / arrays, to_array = target.size() / arrays;
  for (uint64_t i = 0; i < arrays; ++i)
    for_common(a, b, [&](uint64_t at, uint64_t put, uint64_t count) {
      std::memcpy(target.data() + i * to_array + put * each, source.data() + i * from_array + at * each, count * each);
    });
}

void assemble_part(const training_job& job, const std::map<kept_part, byte_block>& from, const kept_part& wanted,
                   std::span<std::byte> target) {
  ensure(target.size() == bytes_of(job, wanted), "a part is assembled in as many bytes as it has");
  std::ranges::fill(target, std::byte{});
  for (auto& [what, data] : from)
    if (what.kind == wanted.kind && what.layer == wanted.layer)
      copy_common(job, what, data.bytes(), wanted, target);
}

bool model_parts::some_are_held_once() const {
  return std::ranges::any_of(owners_, [this](auto& x) { return x.second.count == 1 && bytes_of(*job_, x.first) > 0; });
}

std::optional<std::vector<model_parts::source>> model_parts::sources_of(const kept_part& wanted) const {
  ensure(wanted.layer < job_->layers.size(), "a part is of a layer of the model");
  if (auto same = owners_.find(wanted); same != owners_.end())
    return std::vector{source{wanted, same->second.first}};
  const auto all = runs_of(*job_, wanted);
  uint64_t elements_wanted = 0;
  for (auto& run : all)
    elements_wanted += run.count;
  std::vector<bool> there(elements(*job_, tag_of({value_kind::weight, wanted.layer, wanted.part, wanted.tensor})));
  std::vector<source> result;
  for (auto& [what, its] : owners_) {
    if (what.kind != wanted.kind || what.layer != wanted.layer || elements_wanted == 0)
      continue;
    const auto before = elements_wanted;
    for_common(runs_of(*job_, what), all, [&](uint64_t, uint64_t at, uint64_t count) {
      for (uint64_t i = at; i < at + count; ++i)
        if (!there[i]) {
          there[i] = true;
          --elements_wanted;
        }
    });
    if (elements_wanted < before)
      result.push_back({what, its.first});
  }
  if (elements_wanted > 0)
    return std::nullopt;
  return result;
}

std::vector<kept_part> model_parts::all_of_model() const {
  std::vector<kept_part> result;
  for (uint32_t layer = 0; layer < job_->layers.size(); ++layer)
    for (auto kind : {value_kind::weight, value_kind::optimizer_state})
      if (const auto each = whole_part(kind, layer); bytes_of(*job_, each) > 0)
        result.push_back(each);
  return result;
}

std::optional<kept_part> model_parts::missing() const {
  for (auto& each : all_of_model())
    if (!sources_of(each))
      return each;
  return std::nullopt;
}

caf::expected<std::vector<model_parts::source>> model_parts::whole() const {
  std::vector<source> result;
  for (auto& each : all_of_model()) {
    auto found = sources_of(each);
    if (!found)
      return make_error(errc::device_lost, fmt::format("part of {} is lost", text_of(each)));
    result.insert(result.end(), found->begin(), found->end());
  }
  return result;
}

std::string text_of(const kept_part& whole) {
  return fmt::format("the {} of layer {}", whole.kind == value_kind::weight ? "weight" : "optimizer state",
                     whole.layer);
}

namespace {

struct bytes_of_row {
  uint64_t offset, count;
};

bytes_of_row row_of(const column_shards& x, uint32_t index) {
  const auto its = block_of({}, x.row_bytes / x.element_bytes, x.count, index);
  return {its.offset * x.element_bytes, its.count * x.element_bytes};
}

} // namespace

column_shards::column_shards(const training_job& job, const value_tag& x, uint32_t shards)
  : rows(x.samples.count()), row_bytes(whole_elements(job, x) / rows * bytes_of(job.as)),
    element_bytes(bytes_of(job.as)), count(shards) {
  ensure(count > 0 && rows > 0, "a value that is cut has samples, and is cut into shards");
  ensure(row_bytes % element_bytes == 0, "a row is whole elements");
}

uint64_t column_shards::bytes_filled(uint32_t index) const {
  ensure(index < count, "a shard is one of those that the value is cut into");
  return rows * row_of(*this, index).count;
}

uint64_t column_shards::bytes_each() const {
  const auto columns = row_bytes / element_bytes;
  return rows * ((columns + count - 1) / count) * element_bytes;
}

void column_shards::take(uint32_t index, const std::byte* whole, std::byte* shard) const {
  const auto its = row_of(*this, index);
  for (uint64_t i = 0; i < rows; ++i)
    std::memcpy(shard + i * its.count, whole + i * row_bytes + its.offset, its.count);
  ensure(bytes_filled(index) <= bytes_each(), "a shard fits into the memory of the widest");
  std::memset(shard + bytes_filled(index), 0, bytes_each() - bytes_filled(index));
}

void column_shards::put(uint32_t index, const std::byte* shard, std::byte* whole) const {
  const auto its = row_of(*this, index);
  for (uint64_t i = 0; i < rows; ++i)
    std::memcpy(whole + i * row_bytes + its.offset, shard + i * its.count, its.count);
}

} // namespace ringmaster::training
