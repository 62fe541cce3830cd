#pragma once

#include <ringmaster/cluster.hpp>
#include <ringmaster/layer.hpp>

#include <filesystem>

namespace ringmaster::training {

class data_set; // internal

} // namespace ringmaster::training

namespace RINGMASTER_API {

/// Shape of a sample: of an image; of text 1 x 1 x its length.
struct sample_size {
  uint32_t channels = 1; ///< Colour planes.
  uint32_t rows = 1;     ///< Of a plane.
  uint32_t columns = 1;  ///< Of a row.
};

/// Samples and labels of your own, numbered from 0. They never change, and several threads read them at once.
class own_data_set {
public:
  virtual ~own_data_set() = default;

  virtual std::string name() const = 0;     ///< For people.
  virtual uint32_t count() const = 0;       ///< Samples.
  virtual sample_size shape() const = 0;    ///< Of each sample.
  virtual uint32_t label_count() const = 0; ///< Labels are 0 to this - 1.
  /// Writes one sample's elements, channel by channel and row by row, and its label. Either span may be empty: it is
  /// not wanted. May throw a std::exception, which ends the run with io_error.
  virtual void fill(uint32_t sample, std::span<float> input, std::span<uint32_t> label) const = 0;
};

/// A data set. Copies share it.
class data_handle {
public:
  data_handle() = default; ///< No data.
  /// Data of your own.
  data_handle(std::shared_ptr<const own_data_set> own);
  uint32_t count() const; ///< Samples; 0 for no data.

  explicit data_handle(std::shared_ptr<const training::data_set> content)
    : content_(std::move(content)) {}                                                     ///< Internal.
  const std::shared_ptr<const training::data_set>& internals() const { return content_; } ///< Internal.

private:
  std::shared_ptr<const training::data_set> content_;
};

/// What a model learns from and what it is evaluated on.
struct training_data {
  data_handle training{}; ///< Required.
  data_handle held_out{}; ///< No sample of `training`.
};

/// Drawn digits of 1 x 28 x 28, 10 labels, the same for a seed on every machine. Errors: invalid_argument for a count
/// of 0 or above 2^31.
expected<training_data> synthetic_digits(uint64_t seed, uint32_t training, uint32_t held_out);
/// The data in a folder: images in the formats of MNIST, CIFAR-10 and CIFAR-100, or text. Errors: io_error,
/// invalid_argument with what was looked for, corrupt.
expected<training_data> open_data_folder(const std::filesystem::path& folder);

/// How weights are updated.
struct optimizer_settings {
  /// The rule.
  enum class kind : uint8_t {
    sgd,  ///< Stochastic gradient descent.
    adam, ///< Kingma and Ba 2015, weight decay added to the gradient as in PyTorch.
    adamw ///< Loshchilov and Hutter 2019.
  };
  kind rule = kind::sgd;   ///< The rule.
  double rate = 1e-3;      ///< Learning rate.
  double weight_decay = 0; ///< 0: none.
  double beta1 = 0.9;      ///< Of Adam.
  double beta2 = 0.999;    ///< Of Adam.
  double epsilon = 1e-8;   ///< Of Adam.
};

/// A training run: the model, its data, and how ranks share the work.
struct training_settings {
  model_layers layers{};                  ///< In their order.
  training_data data{};                   ///< What it learns from.
  std::string strategy = "ddp";           ///< A name of strategy_names().
  optimizer_settings optimizer{};         ///< How weights are updated.
  uint32_t ranks = 1;                     ///< Devices.
  uint64_t epochs = 1;                    ///< Passes over the data.
  uint64_t global_batch = 1;              ///< Samples of a step, of all ranks together.
  uint64_t micro_batch = 1;               ///< Samples that a rank works on at once.
  bool uneven = false;                    ///< Ranks may have one sample more than others.
  bool deterministic = false;             ///< Gradients are added in rank order.
  bool float64 = false;                   ///< Compute in float64 instead of float32.
  uint64_t seed = 0;                      ///< Of the first weights and of the order of samples.
  std::filesystem::path checkpoints{};    ///< Directory of this run alone; empty: none are written.
  bool resume = false;                    ///< From the newest checkpoint.
  std::optional<uint64_t> kill_at_step{}; ///< In this step, from 1, one of its devices is killed.
};

/// After an epoch.
struct epoch_result {
  uint64_t epoch = 0;            ///< From 1.
  double loss = 0;               ///< Mean over the epoch's samples, while they were trained; nats.
  double accuracy = 0;           ///< Part of them with the right label.
  uint64_t held_out_samples = 0; ///< Evaluated after the epoch.
  uint64_t held_out_right = 0;   ///< Of these, with the right label.
  double held_out_loss = 0;      ///< Their mean; nats.
  double samples_per_second = 0; ///< Trained.
  uint32_t ranks = 0;            ///< Of its last step.
};

/// What a training run reports while it runs. Called in the thread that called `train`. Empty functions are skipped.
struct training_observer {
  std::function<void(uint64_t step, double loss)> on_step{}; ///< After each step; loss: mean over its samples.
  std::function<void(const epoch_result&)> on_epoch{};       ///< After each epoch.
  std::function<void(const std::string&)> on_note{};         ///< A device was lost or has joined; one sentence.
  std::function<bool()> should_stop{};                       ///< Asked about ten times a second.
};

/// Result of a training run.
struct training_result {
  uint64_t steps = 0;                 ///< Of all epochs.
  std::vector<epoch_result> epochs{}; ///< In their order.
  uint64_t peak_bytes = 0;            ///< Of the rank that held most.
};

/// Trains a model on free devices of a cluster, and returns when that is done. A rank that dies or hangs is replaced,
/// or the run continues with those that are left. Errors: invalid_argument for a model that does not match the data or
/// the strategy; too_few_devices; aborted where the observer stops it; in_use, io_error and corrupt for checkpoints.
expected<training_result> train(const cluster& home, const training_settings& settings,
                                const training_observer& observer = {});

} // namespace RINGMASTER_API
