#include "training/pictures/train_boxes.hpp"

#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

namespace ringmaster {

using namespace training;

namespace {

/// None for operations that take no time in any cost model.
std::optional<box_kind> kind_of(op x) {
  switch (x) {
    case op::keys:
    case op::attend:
    case op::forward: return box_kind::forward;
    case op::attend_backward:
    case op::backward: return box_kind::backward;
    case op::backward_input: return box_kind::backward_input;
    case op::backward_weight: return box_kind::backward_weight;
    case op::loss: return box_kind::loss;
    case op::update: return box_kind::update;
    case op::load_weights: return box_kind::loading;
    case op::offload:
    case op::fetch: return box_kind::communication;
    default: break;
  }
  return is_communication(x) ? std::optional{box_kind::communication} : std::nullopt;
}

bool has_micro_batch(box_kind x) {
  return x <= box_kind::backward_weight;
}

/// The part of the model of each of a rank's layers.
using layer_chunks = std::map<uint32_t, uint32_t>;

/// A gap in the layers starts another chunk.
layer_chunks runs_of(const std::set<uint32_t>& layers) {
  layer_chunks result;
  uint32_t run = 0, expected = layers.empty() ? 0 : *layers.begin();
  for (auto layer : layers) {
    run += layer != expected;
    result[layer] = run;
    expected = layer + 1;
  }
  return result;
}

uint32_t count_of(const layer_chunks& x) {
  return x.empty() ? 0 : x.rbegin()->second + 1;
}

/// For a rank whose stages are neighbours. If the layers do not divide evenly, the first stages have one more.
void split(layer_chunks& layers, uint32_t parts) {
  ensure(parts > 0 && layers.size() >= parts, "each part has a layer");
  const auto count = static_cast<uint32_t>(layers.size());
  uint32_t part = 0, left = 0;
  for (auto& [layer, chunk] : layers) {
    if (left == 0)
      left = count / parts + (part++ < count % parts);
    chunk = part - 1;
    --left;
  }
}

/// Collects the boxes, event by event.
class box_gatherer {
public:
  explicit box_gatherer(const training_outcome& found) : found_(found), chunks_(found.ranks.size()) {
    result_.ranks.resize(found.ranks.size());
    number_micro_batches();
    find_chunks();
    find_shared_micro_batches();
  }

  train_boxes run() {
    for (auto& x : found_.events)
      add(x);
    return std::move(result_);
  }

private:
  void number_micro_batches() {
    std::set<uint64_t> sizes;
    for (auto& x : found_.events)
      if (x.what == op::forward) {
        micro_batches_[x.samples.begin] = 0;
        sizes.insert(x.samples.count());
      }
    for (auto& [first_sample, number] : micro_batches_)
      number = result_.micro_batches++;
    result_.samples = sizes.size() == 1 ? *sizes.begin() : 0;
  }

  void find_chunks() {
    std::vector<std::set<uint32_t>> layers(chunks_.size());
    for (auto& x : found_.events)
      if (x.what == op::forward)
        layers[x.rank].insert(x.layer);
    for (size_t i = 0; i < layers.size(); ++i) {
      chunks_[i] = runs_of(layers[i]);
      result_.chunks = std::max(result_.chunks, count_of(chunks_[i]));
    }
    for (auto& each : chunks_)
      if (count_of(each) == 1 && each.size() >= result_.chunks)
        split(each, result_.chunks);
  }

  /// Experts process positions of other ranks too: such a micro-batch is shown as the rank's own one of the same order.
  void find_shared_micro_batches() {
    std::vector<std::set<uint64_t>> own(chunks_.size()), others(chunks_.size());
    for (auto& x : found_.events)
      if (x.what == op::forward)
        (x.layer == chunks_[x.rank].begin()->first ? own : others)[x.rank].insert(x.samples.begin);
    shown_as_.resize(chunks_.size());
    for (size_t i = 0; i < own.size(); ++i) {
      std::erase_if(others[i], [&](uint64_t x) { return own[i].contains(x); });
      if (others[i].size() == own[i].size())
        std::ranges::transform(others[i], own[i], std::inserter(shown_as_[i], shown_as_[i].end()),
                               [](uint64_t other, uint64_t its) {
                                 return std::pair{other, its};
                               });
    }
  }

  void add(const event& x) {
    ensure(x.rank < result_.ranks.size(), "an event is of a rank of the step");
    auto& its = result_.ranks[x.rank];
    if (!x.aside)
      its.memory.push_back({x.start, x.memory});
    auto kind = kind_of(x.what);
    if (!kind || x.duration <= 0)
      return;
    train_box box{.kind = *kind, .start = x.start, .end = x.start + x.duration};
    if (has_micro_batch(*kind)) {
      const auto shown = shown_as_[x.rank].find(x.samples.begin);
      auto number = micro_batches_.find(shown != shown_as_[x.rank].end() ? shown->second : x.samples.begin);
      if (number != micro_batches_.end())
        box.micro_batch = number->second;
      auto chunk = chunks_[x.rank].find(x.layer);
      box.chunk = chunk != chunks_[x.rank].end() ? chunk->second : 0;
    }
    append(x.aside ? its.aside : its.own, box);
  }

  void append(std::vector<train_box>& row, const train_box& next) const {
    const auto tolerance = 1e-9 * found_.end; // sums of times are rounded
    if (!row.empty() && next.kind != box_kind::communication) {
      auto& last = row.back();
      if (last.kind == next.kind && last.chunk == next.chunk && last.micro_batch == next.micro_batch
          && next.start - last.end <= tolerance) {
        last.end = next.end;
        return;
      }
    }
    row.push_back(next);
  }

  const training_outcome& found_;
  std::map<uint64_t, uint32_t> micro_batches_; ///< Numbers, by first sample.
  std::vector<layer_chunks> chunks_;           ///< By rank.
  /// By rank: from first samples of other ranks' micro-batches to those of its own.
  std::vector<std::map<uint64_t, uint64_t>> shown_as_;
  train_boxes result_;
};

} // namespace

size_t train_boxes::count() const {
  size_t result = 0;
  for (auto& each : ranks)
    result += each.own.size() + each.aside.size();
  return result;
}

namespace {

using box_look = std::pair<box_kind, uint32_t>; ///< Kind and chunk.

std::vector<train_box> in_columns(const std::vector<train_box>& row, uint32_t columns, double end) {
  ensure(columns > 0 && end >= 0, "a row has columns");
  std::vector<train_box> result;
  const auto width = end / columns;
  auto box = row.begin();
  for (uint32_t i = 0; i < columns && box != row.end(); ++i) {
    const auto from = i * width, to = from + width;
    std::map<box_look, double> times;
    double idle = width;
    for (; box != row.end() && box->start < to; ++box) {
      const auto time = std::max(0.0, std::min(box->end, to) - std::max(box->start, from));
      times[{box->kind, box->chunk}] += time;
      idle -= time;
      if (box->end > to)
        break; // continues in the next column
    }
    const auto most = std::ranges::max_element(times, {}, [](auto& x) { return x.second; });
    if (most == times.end() || most->second <= idle)
      continue;
    const auto [kind, chunk] = most->first;
    if (!result.empty() && result.back().kind == kind && result.back().chunk == chunk
        && from - result.back().end < width / 2)
      result.back().end = to;
    else
      result.push_back({.kind = kind, .chunk = chunk, .start = from, .end = to});
  }
  return result;
}

} // namespace

train_boxes train_boxes::in_columns(uint32_t columns, double end) const {
  auto result = *this;
  for (auto& each : result.ranks) {
    each.own = ringmaster::in_columns(each.own, columns, end);
    each.aside = ringmaster::in_columns(each.aside, columns, end);
  }
  return result;
}

train_boxes boxes_of(const training_outcome& found) {
  return box_gatherer{found}.run();
}

} // namespace ringmaster
