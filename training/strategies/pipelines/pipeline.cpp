#include "training/strategies/pipelines/layer_sharing.hpp"
#include "training/strategies/pipelines/pipeline_stage.hpp"

#include <algorithm>

namespace ringmaster::training {

namespace {

using kind = pipeline_step::kind;

} // namespace

/// In no anonymous namespace, since it lies in the frame of a coroutine that others call.
class pipeline_rank {
public:
  pipeline_rank(rank& self, const model& m, const pipeline_plan& plan)
    : self_(self), model_(m), plan_(plan), layers_(self, m, plan.shape, turns_),
      replicas_(plan_.shape.replica_group(self.index())) {
    for (uint32_t c = 0; c < plan_.chunks; ++c)
      stages_.push_back(stage_of(m, plan_, self.index(), c));
  }

  strategy load();
  strategy step(pipeline_step x);
  /// A forward and the backward after it as one block: what one sends to experts goes after the other's work.
  strategy block(pipeline_step there, pipeline_step back);
  bool has_blocks() const { return layers_.has_experts(); }
  strategy update();
  bool holds_back() const { return held_.valid(); }
  strategy let_go();

private:
  range samples_of_step(const pipeline_stage& s, uint32_t micro_batch) const {
    return micro_batch_of(model_, s.samples, s.micro_batches, s.first_micro_batch + micro_batch);
  }

  strategy forward(pipeline_stage& s, pipeline_step x);
  strategy backward(pipeline_stage& s, pipeline_step x);
  strategy backward_weight(pipeline_stage& s, uint32_t micro_batch);
  task<activation> through(pipeline_stage& s, uint64_t l, uint32_t micro_batch);
  task<activation_gradient> back_through(pipeline_stage& s, uint64_t l, uint32_t micro_batch,
                                         activation_gradient& by_output, op what);
  task<activation_gradient> gradient_by_output(pipeline_stage& s, uint32_t micro_batch);
  strategy add(pipeline_stage& s, uint64_t l, weight_gradient gradient);
  strategy update(weight& w, optimizer_state& state, weight_gradient sum);

  bool plain() const { return !layers_.any() && zero_of(replicas_) < 2; }
  /// Those that have the same parameters of the layer.
  const group& sharers_of(uint32_t layer) const {
    return layers_.of_experts(layer) ? layers_.same_experts() : replicas_;
  }
  /// What of these they share: ZeRO's stage.
  uint32_t zero_of(const group& sharers) const { return sharers.count == 1 ? 0 : model_.parallel.zero; }
  shard tensor_shard() const { return {plan_.shape.tensor_index(self_.index()), plan_.shape.tensor}; }
  shard shard_of(const group& sharers) const { return {sharers.index_of(self_.index()), sharers.count}; }
  attention_keys& keys(pipeline_stage& s, uint64_t l, uint32_t micro_batch) {
    return layers_.positions() ? s.under_way.keys(micro_batch, l) : no_keys_;
  }

  rank& self_;
  const model& model_;
  pipeline_plan plan_;
  turns turns_;
  layer_sharing layers_;
  group replicas_;
  std::vector<pipeline_stage> stages_;
  attention_keys no_keys_;
  activation held_;
  uint32_t held_for_ = 0;
};

strategy pipeline_rank::load() {
  for (auto& s : stages_)
    for (uint64_t l = 0; l < s.layers.count(); ++l) {
      const auto layer = static_cast<uint32_t>(s.layers.begin + l);
      const auto& sharers = sharers_of(layer);
      const auto zero = zero_of(sharers);
      const auto part = zero >= 3 ? shard_of(sharers) : shard{}, state_part = zero >= 1 ? shard_of(sharers) : shard{};
      if (layers_.of_experts(layer))
        std::tie(s.weights[l], s.states[l]) = co_await layers_.load_experts(layer, state_part);
      else
        std::tie(s.weights[l], s.states[l]) = co_await self_.load_weights(layer, part, state_part, tensor_shard());
    }
}

strategy pipeline_rank::step(pipeline_step x) {
  auto& s = stages_[x.chunk];
  return x.what == kind::forward           ? forward(s, x)
         : x.what == kind::backward_weight ? backward_weight(s, x.micro_batch)
                                           : backward(s, x);
}

strategy pipeline_rank::block(pipeline_step there, pipeline_step back) {
  stages_[there.chunk].under_way.enter(there.micro_batch); // before the other part has a hold of what lies beside it
  return turns_.both(step(back), step(there));
}

task<activation> pipeline_rank::through(pipeline_stage& s, uint64_t l, uint32_t micro_batch) {
  weight gathered;
  if (zero_of(replicas_) >= 3)
    gathered = co_await self_.all_gather(s.weights[l], replicas_);
  co_return co_await layers_.forward(s.under_way.input(micro_batch, l),
                                     zero_of(replicas_) >= 3 ? gathered : s.weights[l], keys(s, l, micro_batch));
}

strategy pipeline_rank::let_go() {
  co_await self_.send(held_for_, held_);
  held_.drop();
}

strategy pipeline_rank::forward(pipeline_stage& s, pipeline_step step) {
  const auto micro_batch = step.micro_batch;
  const auto layers = s.layers.count();
  auto& at = s.under_way;
  at.enter(micro_batch);
  auto* x = &at.input(micro_batch, 0);
  if (s.first) {
    x[0] = co_await self_.input(samples_of_step(s, micro_batch));
    if (!plain())
      x[0] = co_await layers_.own_positions(std::move(x[0]));
  } else if (s.previous != self_.index()) { // which would have put it here
    x[0] = co_await self_.receive<activation>(s.previous);
  }
  activation output;
  for (uint64_t l = 0; l < layers; ++l) {
    auto& y = l + 1 < layers ? x[l + 1] : output;
    if (plain())
      y = co_await self_.forward(x[l], s.weights[l]);
    else
      y = co_await through(s, l, micro_batch);
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

strategy pipeline_rank::add(pipeline_stage& s, uint64_t l, weight_gradient gradient) {
  if (zero_of(replicas_) >= 2) {
    gradient = co_await layers_.sum_replicated(std::move(gradient));
    gradient = co_await self_.reduce_scatter(std::move(gradient), replicas_);
  }
  co_await self_.add(s.sums[l], std::move(gradient));
}

// The gradient by the layer's input, but where only that by the weight is wanted.
task<activation_gradient> pipeline_rank::back_through(pipeline_stage& s, uint64_t l, uint32_t micro_batch,
                                                      activation_gradient& by_output, op what) {
  weight gathered;
  if (zero_of(replicas_) >= 3)
    gathered = co_await self_.all_gather(s.weights[l], replicas_);
  auto made = co_await layers_.backward(what, s.under_way.input(micro_batch, l),
                                        zero_of(replicas_) >= 3 ? gathered : s.weights[l], keys(s, l, micro_batch),
                                        by_output);
  gathered.drop();
  if (made.by_weight.valid())
    co_await add(s, l, std::move(made.by_weight));
  co_return co_await layers_.completed(std::move(made));
}

task<activation_gradient> pipeline_rank::gradient_by_output(pipeline_stage& s, uint32_t micro_batch) {
  auto& at = s.under_way.ends(micro_batch);
  if (!s.last)
    co_return std::move(at.by_output);
  co_return co_await layers_.loss(std::move(at.output));
}

strategy pipeline_rank::backward(pipeline_stage& s, pipeline_step step) {
  auto& at = s.under_way;
  activation_gradient g;
  if (s.last || s.next == self_.index())
    g = co_await gradient_by_output(s, step.micro_batch);
  else
    g = co_await self_.receive<activation_gradient>(s.next);
  for (auto l = s.layers.count(); l-- > 0;) {
    auto& x = at.input(step.micro_batch, l);
    if (step.what == kind::backward_input) {
      activation_gradient by_input;
      if (plain())
        by_input = co_await self_.backward_input(x, s.weights[l], g);
      else
        by_input = co_await back_through(s, l, step.micro_batch, g, op::backward_input);
      at.by_output(step.micro_batch, l) = std::exchange(g, std::move(by_input));
    } else if (plain()) {
      weight_gradient gradient;
      std::tie(gradient, g) = co_await self_.backward(x, s.weights[l], g);
      x.drop();
      co_await self_.add(s.sums[l], std::move(gradient));
    } else {
      g = co_await back_through(s, l, step.micro_batch, g, op::backward);
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

strategy pipeline_rank::backward_weight(pipeline_stage& s, uint32_t micro_batch) {
  for (auto l = s.layers.count(); l-- > 0;) {
    auto& x = s.under_way.input(micro_batch, l);
    auto& by_output = s.under_way.by_output(micro_batch, l);
    if (plain())
      co_await self_.add(s.sums[l], co_await self_.backward_weight(x, s.weights[l], by_output));
    else
      co_await back_through(s, l, micro_batch, by_output, op::backward_weight);
    x.drop();
    by_output.drop();
  }
  s.under_way.leave(micro_batch);
}

strategy pipeline_rank::update(weight& w, optimizer_state& state, weight_gradient sum) {
  const auto& sharers = sharers_of(w.layer());
  const auto zero = zero_of(sharers);
  if (zero < 2 && !layers_.of_experts(w.layer()))
    sum = co_await layers_.sum_replicated(std::move(sum));
  if (plan_.where == placement::both_ways) { // the other rank that has this stage, for the other half of the samples
    auto& shape = plan_.shape;
    auto mirror = shape.at_stage(self_.index(), shape.pipeline - 1 - shape.stage(self_.index()));
    auto low = std::min(self_.index(), mirror), high = std::max(self_.index(), mirror);
    sum = co_await self_.all_reduce(std::move(sum), {low, 2, high - low});
  }
  const bool takes_its_part = zero == 1 || zero == 2;
  if (zero == 0 && sharers.count > 1)
    sum = co_await self_.all_reduce(std::move(sum), sharers);
  if (zero == 1)
    sum = co_await self_.reduce_scatter(std::move(sum), sharers);
  if (takes_its_part)
    w = co_await self_.slice(std::move(w), shard_of(sharers));
  co_await self_.update(w, state, std::move(sum));
  if (takes_its_part)
    w = co_await self_.all_gather(w, sharers);
  co_await self_.finish(std::move(w));
}

strategy pipeline_rank::update() {
  // What two ranks have is reduced in the order of its layers by both.
  std::vector<std::pair<pipeline_stage*, uint64_t>> all;
  for (auto& s : stages_)
    for (uint64_t l = 0; l < s.layers.count(); ++l)
      all.emplace_back(&s, l);
  std::ranges::sort(all, {}, [](auto& x) { return x.first->layers.begin + x.second; });
  for (auto [s, l] : all)
    co_await update(s->weights[l], s->states[l], std::move(s->sums[l]));
}

strategy run_pipeline(rank& self, const model& m, pipeline_plan plan) {
  auto order = std::move(plan.order);
  pipeline_rank mine{self, m, std::move(plan)};
  co_await mine.load();
  for (uint32_t i = 0; i < order.count; ++i) {
    const auto step = order.step(i);
    const bool is_block = step.with_next && mine.has_blocks();
    if (is_block)
      co_await mine.block(step, order.step(++i));
    else
      co_await mine.step(step);
    if ((is_block || !step.with_next) && mine.holds_back())
      co_await mine.let_go();
  }
  co_await mine.update();
}

} // namespace ringmaster::training
