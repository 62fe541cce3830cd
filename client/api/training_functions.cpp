#include "client/api/handles.hpp"

#include "client/training/training_run.hpp"
#include "runtime/invariants/ensure.hpp"
#include "training/data/data_folder.hpp"
#include "training/data/synthetic_digits.hpp"
#include "training/layers/plain_layers.hpp"

#include <ringmaster/training_run.hpp>

#include <fmt/format.h>

namespace ringmaster::api {

namespace {

/// A layer of the program as one of the library.
class adapted_layer final : public training::layer {
public:
  explicit adapted_layer(std::shared_ptr<const own_layer> own) : own_(std::move(own)) {
    ensure(own_ != nullptr, "a layer of a program's own exists");
  }

  std::string name() const override { return own_->name(); }
  std::string_view making() const override { return "program"; }
  uint64_t inputs() const override { return own_->inputs(); }
  uint64_t outputs() const override { return own_->outputs(); }
  std::span<const training::parameter> parameters() const override { return own_->parameters(); }
  caf::error cannot_share(uint32_t ranks) const override {
    if (own_->can_be_shared_by(ranks))
      return caf::none;
    return invalid(fmt::format("{} cannot be shared by {} ranks", name(), ranks));
  }
  void forward(const training::pass& at, const std::byte* x, const std::byte* w, std::byte* y) const override {
    own_->forward(at, x, w, y);
  }
  void backward(const training::pass& at, const std::byte* x, const std::byte* w, const std::byte* by_output,
                std::byte* by_weight, std::byte* by_input) const override {
    own_->backward(at, x, w, by_output, by_weight, by_input);
  }

private:
  std::shared_ptr<const own_layer> own_;
};

/// Data of the program as a data set of the library.
class adapted_data final : public training::data_set {
public:
  explicit adapted_data(std::shared_ptr<const own_data_set> own) : own_(std::move(own)) {
    ensure(own_ != nullptr, "a data set of a program's own exists");
  }

  std::string name() const override { return own_->name(); }
  uint32_t count() const override { return own_->count(); }
  training::sample_shape shape() const override {
    const auto size = own_->shape();
    return {size.channels, size.rows, size.columns};
  }
  uint32_t label_count() const override { return own_->label_count(); }

private:
  void fill_one(uint32_t sample, std::span<float> input, std::span<uint32_t> labels) const override {
    own_->fill(sample, input, labels);
  }

  std::shared_ptr<const own_data_set> own_;
};

training::nonlinearity to_internal(activation_function f) {
  switch (f) {
    case activation_function::relu: return training::nonlinearity::relu;
    case activation_function::tanh: return training::nonlinearity::tanh;
    case activation_function::none: break;
  }
  return training::nonlinearity::none;
}

training::optimizer to_internal(const optimizer_settings& x) {
  training::optimizer result;
  result.kind = x.rule == optimizer_settings::kind::sgd    ? training::optimizer_kind::sgd
                : x.rule == optimizer_settings::kind::adam ? training::optimizer_kind::adam
                                                           : training::optimizer_kind::adamw;
  result.rate = x.rate;
  result.weight_decay = x.weight_decay;
  result.beta1 = x.beta1;
  result.beta2 = x.beta2;
  result.epsilon = x.epsilon;
  return result;
}

layer_handle handle_of(std::unique_ptr<const training::layer> x) {
  return layer_handle{std::shared_ptr<const training::layer>{std::move(x)}};
}

expected<training_data> data_of(caf::expected<training::opened_data>&& x) {
  if (!x)
    return public_error(x.error());
  return training_data{data_handle{std::move(x->training)}, data_handle{std::move(x->held_out)}};
}

expected<training::run_settings> to_internal(const training_settings& x) {
  const auto* strategy = training::strategy_of(x.strategy);
  if (strategy == nullptr)
    return error{errc::invalid_argument, "there is no strategy \"" + x.strategy + "\""};
  training::run_settings result;
  result.data.training = x.data.training.internals();
  result.data.held_out = x.data.held_out.internals();
  result.ranks = x.ranks;
  result.epochs = x.epochs;
  result.deterministic = x.deterministic;
  result.checkpoints = x.checkpoints;
  result.resume = x.resume;
  result.kill_at = x.kill_at_step;
  auto& job = result.job;
  for (auto& each : x.layers)
    job.layers.push_back(each.internals());
  job.shape.layers = static_cast<uint32_t>(job.layers.size());
  job.shape.global_batch = x.global_batch;
  job.shape.micro_batch = x.micro_batch;
  job.shape.uneven = x.uneven;
  job.strategy = strategy;
  job.as = x.float64 ? training::precision::float64 : training::precision::float32;
  job.update = to_internal(x.optimizer);
  job.seed = x.seed;
  return result;
}

epoch_result to_public(const training::epoch_report& x) {
  epoch_result result;
  result.epoch = x.epoch;
  result.loss = x.loss;
  result.accuracy = x.accuracy;
  result.held_out_samples = x.held_out.samples;
  result.held_out_right = x.held_out.right;
  if (x.held_out.samples != 0)
    result.held_out_loss = x.held_out.loss / static_cast<double>(x.held_out.samples);
  result.samples_per_second = x.samples_a_second;
  result.ranks = x.ranks;
  return result;
}

training::run_watcher to_internal(const training_observer& x) {
  training::run_watcher result;
  if (x.on_step)
    result.step_done = [call = x.on_step](const training::step_report& done) { call(done.step, done.loss); };
  if (x.on_epoch)
    result.epoch_done = [call = x.on_epoch](const training::epoch_report& done) { call(to_public(done)); };
  if (x.on_note)
    result.note = x.on_note;
  if (x.should_stop)
    result.stops = x.should_stop;
  return result;
}

} // namespace

layer_handle::layer_handle(std::shared_ptr<const own_layer> own)
  : content_(std::make_shared<const adapted_layer>(std::move(own))) {}
layer_handle::layer_handle(std::shared_ptr<const training::layer> content) : content_(std::move(content)) {
  ensure(content_ != nullptr, "a layer's handle has a layer");
}

std::string layer_handle::name() const {
  return content_->name();
}

uint64_t layer_handle::inputs() const {
  return content_->inputs();
}

uint64_t layer_handle::outputs() const {
  return content_->outputs();
}

layer_handle linear_layer(uint64_t inputs, uint64_t outputs, activation_function f) {
  return handle_of(training::linear(inputs, outputs, to_internal(f)));
}

layer_handle feed_forward_layer(uint64_t width, uint64_t hidden, activation_function f) {
  return handle_of(training::feed_forward(width, hidden, to_internal(f)));
}

model_layers perceptron(const std::vector<uint64_t>& sizes, activation_function f) {
  model_layers result;
  for (auto& each : training::perceptron(sizes, to_internal(f)))
    result.emplace_back(each);
  return result;
}

data_handle::data_handle(std::shared_ptr<const own_data_set> own)
  : content_(std::make_shared<const adapted_data>(std::move(own))) {}

uint32_t data_handle::count() const {
  return content_ ? content_->count() : 0;
}

expected<training_data> synthetic_digits(uint64_t seed, uint32_t training, uint32_t held_out) {
  return data_of(training::make_synthetic_digits(seed, training, held_out));
}

expected<training_data> open_data_folder(const std::filesystem::path& folder) {
  return data_of(training::open_data_folder(folder));
}

expected<training_result> train(const cluster& home, const training_settings& settings,
                                const training_observer& observer) {
  auto what = to_internal(settings);
  if (!what)
    return what.error();
  auto coordinator = home.internals()->coordinator();
  if (!coordinator)
    return public_error(coordinator.error());
  auto found = training::train(*home.internals()->system, *coordinator, std::move(*what), to_internal(observer));
  if (!found)
    return public_error(found.error());
  training_result result;
  result.steps = found->steps;
  result.peak_bytes = found->bytes_peak;
  for (auto& each : found->epochs)
    result.epochs.push_back(to_public(each));
  return result;
}

} // namespace ringmaster::api
