#pragma once

#include "training/computed/training_job.hpp"
#include "training/libtorch/libtorch_models.hpp"

namespace ringmaster::training {

/// Which model, as plain_libtorch writes it.
struct plain_model {
  enum class which : uint8_t { perceptron, lenet, resnet9, bytes };

  which kind{};
  std::vector<uint64_t> sizes{}; ///< Of a perceptron.
  byte_transformer bytes{};
};

/// A model as one writes it with libtorch alone, from its own modules (Linear, BatchNorm2d, MultiheadAttention ...), in
/// one graph and with its own optimizer: what layers and strategies are compared with. One thread.
class plain_libtorch {
public:
  /// Begins with the job's first weights, and takes its samples and its optimizer. The job outlives it.
  plain_libtorch(const plain_model& what, const training_job& job);
  ~plain_libtorch();

  /// The next step, of the job's global batch; its mean loss.
  double run_step();
  /// As trained_model::parameters: layer by layer, and as the job's layers have them.
  std::vector<std::vector<double>> parameters() const;

private:
  struct parts;
  std::unique_ptr<parts> parts_;
};

} // namespace ringmaster::training
