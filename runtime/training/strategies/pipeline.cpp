#include "runtime/training/strategies/pipeline.hpp"

#include "messages/errc.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

namespace ringmaster::training {

namespace {

using kind = pipeline_step::kind;

/// What of a micro-batch in a stage is there for some only: at the ends of the model, or between the halves of a backward.
struct passage_ends {
  activation output;             ///< The model's, until the loss.
  activation_gradient by_output; ///< Where the next stage is on this same rank.
  std::vector<activation_gradient> by_outputs; ///< By layer, kept where the weights' gradients come later.
};

/// The micro-batches that are in a stage, each with its layers' inputs. Large pipelines have millions: they lie in a ring, and a
/// rank meets them in its order.
class passages {
public:
  explicit passages(size_t layers = 1) : layers_(layers), inputs_(layers), entered_(1), ends_(1) {}

  void enter(uint32_t micro_batch) {
    if (micro_batch - oldest_ > mask_)
      grow();
    newest_ = std::max(newest_, micro_batch + 1);
    entered_[micro_batch & mask_] = true;
  }
  activation& input(uint32_t micro_batch, size_t layer) { return inputs_[(micro_batch & mask_) * layers_ + layer]; }
  passage_ends& ends(uint32_t micro_batch) {
    auto& found = ends_[micro_batch & mask_];
    if (!found)
      found = std::make_unique<passage_ends>();
    return *found;
  }
  void leave(uint32_t micro_batch) {
    entered_[micro_batch & mask_] = false;
    while (oldest_ < newest_ && !entered_[oldest_ & mask_])
      ++oldest_;
  }

private:
  void grow() {
    const auto mask = 2 * mask_ + 1;
    std::vector<activation> inputs((mask + size_t{1}) * layers_);
    std::vector<bool> entered(mask + size_t{1});
    std::vector<std::unique_ptr<passage_ends>> ends(mask + size_t{1});
    for (auto i = oldest_; i < newest_; ++i) {
      for (size_t l = 0; l < layers_; ++l)
        inputs[(i & mask) * layers_ + l] = std::move(input(i, l));
      entered[i & mask] = entered_[i & mask_];
      ends[i & mask] = std::move(ends_[i & mask_]);
    }
    inputs_ = std::move(inputs);
    entered_ = std::move(entered);
    ends_ = std::move(ends);
    mask_ = mask;
  }

  size_t layers_;
  uint32_t mask_ = 0; ///< The ring's size, a power of two, less one.
  uint32_t oldest_ = 0, newest_ = 0;
  std::vector<activation> inputs_;
  std::vector<bool> entered_;
  std::vector<std::unique_ptr<passage_ends>> ends_;
};

/// A stage of the model on this rank.
struct stage {
  bool first = false, last = false;
  uint32_t previous = 0, next = 0; ///< The ranks that have these.
  uint32_t previous_chunk = 0, next_chunk = 0;
  range layers;
  range samples;
  std::vector<weight> weights;
  std::vector<optimizer_state> states;
  std::vector<weight_gradient> sums;
  passages under_way;
};

class pipeline_rank {
public:
  pipeline_rank(rank& self, const model& m, pipeline_plan plan)
    : self_(self), model_(m), plan_(std::move(plan)), tensor_(plan_.shape.tensor_group(self.index())),
      data_(plan_.shape.data_group(self.index())), zero_(data_.count == 1 ? 0 : plan_.sharded ? 3 : m.zero) {
    for (uint32_t c = 0; c < plan_.chunks; ++c)
      stages_.push_back(stage_of(c));
  }

  strategy load();
  strategy step(pipeline_step x);
  strategy update();
  bool holds_back() const { return held_.valid(); }
  strategy let_go();

private:
  uint32_t stage_count() const {
    return plan_.where == placement::both_ways ? plan_.shape.pipeline : plan_.shape.pipeline * plan_.chunks;
  }
  /// Which stage place r of the pipeline has as chunk c.
  uint32_t number(uint32_t r, uint32_t c) const;
  stage stage_of(uint32_t chunk) const;
  range samples_of_step(const stage& s, uint32_t micro_batch) const {
    auto begin = s.samples.begin + micro_batch * model_.micro_batch;
    return {begin, std::min(begin + model_.micro_batch, s.samples.end)};
  }

  strategy forward(stage& s, pipeline_step x);
  strategy backward(stage& s, pipeline_step x);
  strategy backward_weight(stage& s, uint32_t micro_batch);
  task<activation> through(stage& s, uint64_t l, const activation& x);
  task<activation_gradient> back_through(stage& s, uint64_t l, const activation& x, const activation_gradient& by_output, kind what);
  task<activation_gradient> gradient_by_output(stage& s, uint32_t micro_batch);
  task<activation> whole(const activation& x);
  task<activation_gradient> whole(const activation_gradient& x);
  strategy add(stage& s, uint64_t l, weight_gradient gradient);
  strategy update(weight& w, optimizer_state& state, weight_gradient sum);

  bool plain() const { return !shared() && zero_ < 2; }
  bool shared() const { return tensor_.count > 1; }
  bool in_sequence() const { return shared() && model_.sequence_parallel; }
  shard tensor_shard() const { return {plan_.shape.tensor_index(self_.index()), tensor_.count}; }
  shard data_shard() const { return {plan_.shape.data_index(self_.index()), data_.count}; }

  rank& self_;
  const model& model_;
  pipeline_plan plan_;
  group tensor_, data_;
  uint32_t zero_; ///< What of a stage its data-parallel ranks share: ZeRO's stage.
  std::vector<stage> stages_;
  activation held_;
  uint32_t held_for_ = 0;
};

uint32_t pipeline_rank::number(uint32_t r, uint32_t c) const {
  const auto p = plan_.shape.pipeline;
  if (plan_.where == placement::loop)
    return c * p + r;
  if (plan_.where == placement::both_ways)
    return c == 0 ? r : p - 1 - r;
  return c == 0 ? r : 2 * p - 1 - r;
}

stage pipeline_rank::stage_of(uint32_t chunk) const {
  const auto& shape = plan_.shape;
  const auto p = shape.pipeline, r = shape.stage(self_.index()), mine = number(r, chunk);
  stage s;
  s.first = mine == 0;
  s.last = mine + 1 == stage_count();
  for (uint32_t c = 0; c < plan_.chunks; ++c)
    for (uint32_t other = 0; other < p; ++other) {
      if (plan_.where == placement::both_ways && c != chunk)
        continue;
      if (number(other, c) + 1 == mine) {
        s.previous = shape.at_stage(self_.index(), other);
        s.previous_chunk = c;
      }
      if (number(other, c) == mine + 1) {
        s.next = shape.at_stage(self_.index(), other);
        s.next_chunk = c;
      }
    }
  s.layers = layers_of(model_, mine, stage_count());
  s.samples = samples_of(model_, shape.data_index(self_.index()), shape.data);
  if (plan_.where == placement::both_ways) {
    auto half = s.samples.begin + pipeline_micro_batches(model_, shape) / 2 * model_.micro_batch;
    (chunk == 0 ? s.samples.end : s.samples.begin) = half;
  }
  s.under_way = passages{s.layers.count()};
  s.weights.resize(s.layers.count());
  s.states.resize(s.layers.count());
  s.sums.resize(s.layers.count());
  return s;
}

strategy pipeline_rank::load() {
  const auto part = zero_ >= 3 ? data_shard() : shard{};
  const auto state_part = zero_ >= 1 ? data_shard() : shard{};
  for (auto& s : stages_)
    for (uint64_t l = 0; l < s.layers.count(); ++l)
      std::tie(s.weights[l], s.states[l]) =
        co_await self_.load_weights(static_cast<uint32_t>(s.layers.begin + l), part, state_part, tensor_shard());
}

strategy pipeline_rank::step(pipeline_step x) {
  auto& s = stages_[x.chunk];
  return x.what == kind::forward           ? forward(s, x)
         : x.what == kind::backward_weight ? backward_weight(s, x.micro_batch)
                                           : backward(s, x);
}

task<activation> pipeline_rank::whole(const activation& x) {
  co_return co_await self_.all_gather(x, tensor_);
}

task<activation_gradient> pipeline_rank::whole(const activation_gradient& x) {
  co_return co_await self_.all_gather(x, tensor_);
}

// Where ranks share a layer each makes a summand of its output. Between layers they have the whole, or share the positions.
task<activation> pipeline_rank::through(stage& s, uint64_t l, const activation& x) {
  weight gathered;
  if (zero_ >= 3)
    gathered = co_await self_.all_gather(s.weights[l], data_);
  auto& w = zero_ >= 3 ? gathered : s.weights[l];
  if (!shared())
    co_return co_await self_.forward(x, w);
  if (!in_sequence())
    co_return co_await self_.all_reduce(co_await self_.forward(x, w), tensor_);
  auto all = co_await whole(x);
  auto summand = co_await self_.forward(all, w);
  all.drop();
  co_return co_await self_.reduce_scatter(std::move(summand), tensor_);
}

strategy pipeline_rank::let_go() {
  co_await self_.send(held_for_, held_);
  held_.drop();
}

strategy pipeline_rank::forward(stage& s, pipeline_step step) {
  const auto micro_batch = step.micro_batch;
  const auto layers = s.layers.count();
  auto& at = s.under_way;
  at.enter(micro_batch);
  auto* x = &at.input(micro_batch, 0);
  if (s.first) {
    x[0] = co_await self_.input(samples_of_step(s, micro_batch));
    if (in_sequence())
      x[0] = co_await self_.slice(std::move(x[0]), tensor_shard());
  } else if (s.previous != self_.index()) { // which would have put it here
    x[0] = co_await self_.receive<activation>(s.previous);
  }
  activation output;
  for (uint64_t l = 0; l < layers; ++l) {
    auto& y = l + 1 < layers ? x[l + 1] : output;
    if (plain())
      y = co_await self_.forward(x[l], s.weights[l]);
    else
      y = co_await through(s, l, x[l]);
  }
  if (s.last) {
    at.ends(micro_batch).output = std::move(output);
  } else if (s.next == self_.index()) {
    auto& there = stages_[s.next_chunk].under_way;
    there.enter(micro_batch);
    there.input(micro_batch, 0) = std::move(output);
  } else if (step.with_next) {
    held_ = std::move(output);
    held_for_ = s.next;
  } else {
    co_await self_.send(s.next, output);
  }
}

strategy pipeline_rank::add(stage& s, uint64_t l, weight_gradient gradient) {
  if (zero_ >= 2)
    gradient = co_await self_.reduce_scatter(std::move(gradient), data_);
  co_await self_.add(s.sums[l], std::move(gradient));
}

// The gradient by the layer's input, but where only that by the weight is wanted.
task<activation_gradient> pipeline_rank::back_through(stage& s, uint64_t l, const activation& input, const activation_gradient& g,
                                                      kind what) {
  weight gathered;
  activation all;
  activation_gradient all_by_output;
  if (zero_ >= 3)
    gathered = co_await self_.all_gather(s.weights[l], data_);
  if (in_sequence()) {
    all = co_await whole(input);
    all_by_output = co_await whole(g);
  }
  auto& w = zero_ >= 3 ? gathered : s.weights[l];
  auto& x = in_sequence() ? all : input;
  auto& by_output = in_sequence() ? all_by_output : g;
  weight_gradient gradient;
  activation_gradient by_input;
  if (what == kind::backward)
    std::tie(gradient, by_input) = co_await self_.backward(x, w, by_output);
  else if (what == kind::backward_input)
    by_input = co_await self_.backward_input(x, w, by_output);
  else
    gradient = co_await self_.backward_weight(x, w, by_output);
  gathered.drop();
  all.drop();
  all_by_output.drop();
  if (gradient.valid())
    co_await add(s, l, std::move(gradient));
  if (!by_input.valid())
    co_return activation_gradient{};
  if (in_sequence())
    by_input = co_await self_.reduce_scatter(std::move(by_input), tensor_);
  else if (shared())
    by_input = co_await self_.all_reduce(std::move(by_input), tensor_);
  co_return std::move(by_input);
}

task<activation_gradient> pipeline_rank::gradient_by_output(stage& s, uint32_t micro_batch) {
  auto& at = s.under_way.ends(micro_batch);
  if (!s.last)
    co_return std::move(at.by_output);
  auto output = std::move(at.output);
  if (!in_sequence())
    co_return co_await self_.loss(output);
  auto all = co_await whole(output);
  auto by_output = co_await self_.loss(all);
  co_return co_await self_.slice(std::move(by_output), tensor_shard());
}

strategy pipeline_rank::backward(stage& s, pipeline_step step) {
  auto& at = s.under_way;
  activation_gradient g;
  if (s.last || s.next == self_.index())
    g = co_await gradient_by_output(s, step.micro_batch);
  else
    g = co_await self_.receive<activation_gradient>(s.next);
  if (step.what == kind::backward_input)
    at.ends(step.micro_batch).by_outputs.resize(s.layers.count());
  for (auto l = s.layers.count(); l-- > 0;) {
    auto& x = at.input(step.micro_batch, l);
    if (step.what == kind::backward_input) {
      activation_gradient by_input;
      if (plain())
        by_input = co_await self_.backward_input(x, s.weights[l], g);
      else
        by_input = co_await back_through(s, l, x, g, step.what);
      at.ends(step.micro_batch).by_outputs[l] = std::exchange(g, std::move(by_input));
    } else if (plain()) {
      weight_gradient gradient;
      std::tie(gradient, g) = co_await self_.backward(x, s.weights[l], g);
      x.drop();
      co_await self_.add(s.sums[l], std::move(gradient));
    } else {
      g = co_await back_through(s, l, x, g, step.what);
      x.drop();
    }
  }
  if (!s.first && s.previous == self_.index())
    stages_[s.previous_chunk].under_way.ends(step.micro_batch).by_output = std::move(g);
  else if (!s.first)
    co_await self_.send(s.previous, g);
  if (step.what == kind::backward)
    s.under_way.leave(step.micro_batch);
}

strategy pipeline_rank::backward_weight(stage& s, uint32_t micro_batch) {
  auto& by_outputs = s.under_way.ends(micro_batch).by_outputs;
  for (auto l = s.layers.count(); l-- > 0;) {
    auto& x = s.under_way.input(micro_batch, l);
    if (plain())
      co_await self_.add(s.sums[l], co_await self_.backward_weight(x, s.weights[l], by_outputs[l]));
    else
      co_await back_through(s, l, x, by_outputs[l], kind::backward_weight);
    x.drop();
    by_outputs[l].drop();
  }
  s.under_way.leave(micro_batch);
}

strategy pipeline_rank::update(weight& w, optimizer_state& state, weight_gradient sum) {
  if (plan_.where == placement::both_ways) { // the other rank that has this stage, for the other half of the samples
    auto& shape = plan_.shape;
    auto mirror = shape.at_stage(self_.index(), shape.pipeline - 1 - shape.stage(self_.index()));
    auto low = std::min(self_.index(), mirror), high = std::max(self_.index(), mirror);
    sum = co_await self_.all_reduce(std::move(sum), {low, 2, high - low});
  }
  const bool takes_its_part = zero_ == 1 || zero_ == 2;
  if (zero_ == 0 && data_.count > 1)
    sum = co_await self_.all_reduce(std::move(sum), data_);
  if (zero_ == 1)
    sum = co_await self_.reduce_scatter(std::move(sum), data_);
  if (takes_its_part)
    w = co_await self_.slice(std::move(w), data_shard());
  co_await self_.update(w, state, std::move(sum));
  if (takes_its_part)
    w = co_await self_.all_gather(w, data_);
  co_await self_.finish(std::move(w));
}

strategy pipeline_rank::update() {
  // What two ranks have is reduced in the order of its layers by both.
  std::vector<std::pair<stage*, uint64_t>> all;
  for (auto& s : stages_)
    for (uint64_t l = 0; l < s.layers.count(); ++l)
      all.emplace_back(&s, l);
  std::ranges::sort(all, {}, [](auto& x) { return x.first->layers.begin + x.second; });
  for (auto [s, l] : all)
    co_await update(s->weights[l], s->states[l], std::move(s->sums[l]));
}

} // namespace

strategy run_pipeline(rank& self, const model& m, pipeline_plan plan) {
  auto order = std::move(plan.order);
  pipeline_rank mine{self, m, std::move(plan)};
  co_await mine.load();
  for (uint32_t i = 0; i < order.count; ++i) {
    const auto step = order.step(i);
    co_await mine.step(step);
    if (!step.with_next && mine.holds_back())
      co_await mine.let_go();
  }
  co_await mine.update();
}

pipeline_order pipeline_order::listed(std::vector<pipeline_step> all) {
  auto count = static_cast<uint32_t>(all.size());
  return {count, [steps = std::make_shared<std::vector<pipeline_step>>(std::move(all))](uint32_t i) { return (*steps)[i]; }};
}

mesh pipeline_mesh(const model& m, uint32_t world_size) {
  mesh result{std::max(m.tensor, 1u), std::max(m.data, 1u), 1};
  result.pipeline = world_size / std::max<uint32_t>(result.tensor * result.data, 1);
  return result;
}

uint32_t pipeline_micro_batches(const model& m, const mesh& shape) {
  return static_cast<uint32_t>((m.global_batch / shape.data - 1) / m.micro_batch + 1);
}

caf::error check_pipeline_of(const model& m, const mesh& shape, uint32_t stages) {
  if (stages > m.layers)
    return make_error(errc::invalid_argument, fmt::format("{} stages need at least as many layers, not {}", stages, m.layers));
  if (shape.data > 1)
    return check_data_parallel(m, shape.data);
  return caf::none;
}

caf::error check_pipeline(const model& m, uint32_t world_size) {
  if (auto problem = check_mesh(m, world_size))
    return problem;
  auto shape = pipeline_mesh(m, world_size);
  return check_pipeline_of(m, shape, shape.pipeline);
}

} // namespace ringmaster::training
