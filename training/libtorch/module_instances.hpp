#pragma once

#include "training/libtorch/libtorch_calls.hpp"
#include "training/libtorch/module_layer.hpp"

#include <mutex>

namespace ringmaster::training {

struct module_tensor {
  parameter described;
  torch::Tensor tensor; ///< The module's own.
};

/// A module's parameters and batch norms' statistics in the order of layer::parameters: what is cut, what is
/// replicated, statistics. From now on batch norm's running statistics become those of the latest batch.
/// Throws std::runtime_error for batch norm without a momentum.
std::vector<module_tensor> tensors_of(const torch::nn::Module& x, const given_parameters& told);

/// A module without memory of its own for parameters: each use says where they lie. One use at a time; with autograd,
/// until the graph is gone.
class module_instance {
public:
  module_instance(const module_plan& plan, precision as, shard tensor);

  /// Parameters are views of w from now on. What trains leaves a batch's statistics in the instance, what does not
  /// takes w's.
  void look_at(const std::byte* w, bool trains);
  torch::Tensor forward(const torch::Tensor& x) const { return made_.forward(x); }

  /// In the order of layer::parameters; statistics are those behind `learning`.
  const std::vector<torch::Tensor>& tensors() const { return tensors_; }
  size_t learning() const { return learning_; }

private:
  made_module made_;
  std::vector<torch::Tensor> tensors_, batch_statistics_;
  size_t learning_ = 0;
};

/// As many instances as are in use at once, of each kind. Thread-safe.
class module_instances : public std::enable_shared_from_this<module_instances> {
public:
  explicit module_instances(module_plan plan) : plan_(std::move(plan)) {}

  const module_plan& plan() const { return plan_; }
  /// Comes back when the last holder releases it.
  std::shared_ptr<module_instance> take(precision as, shard tensor);

private:
  using kind = std::tuple<precision, uint32_t, uint32_t>;

  module_plan plan_;
  std::mutex guard_;
  std::map<kind, std::vector<std::unique_ptr<module_instance>>> free_;
};

} // namespace ringmaster::training
