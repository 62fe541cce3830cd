#include "training/libtorch/module_instances.hpp"

#include <fmt/format.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/embedding.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace ringmaster::training {

namespace {

/// The same at every run, where the module's own first numbers are drawn.
void set_beginning(parameter& x, const torch::Tensor& tensor, const torch::nn::Module& of) {
  if (tensor.numel() == 0)
    return;
  const auto first = tensor.flatten()[0];
  if (tensor.eq(first).all().item<bool>()) {
    x.mean = first.item<double>();
    return;
  }
  if (of.as<torch::nn::EmbeddingImpl>() != nullptr) { // normal with variance 1 there
    x.bound = std::sqrt(3.0);
    return;
  }
  auto matrix = tensor;
  if (tensor.dim() < 2)
    if (auto* weight = of.named_parameters(false).find("weight"); weight != nullptr && weight->dim() > 1)
      matrix = *weight;
  const auto inputs = matrix.dim() > 1 ? matrix.numel() / matrix.size(0) : matrix.numel();
  x.bound = 1 / std::sqrt(static_cast<double>(inputs));
}

module_tensor described(std::string name, const torch::Tensor& tensor) {
  module_tensor result{{}, tensor};
  result.described.name = std::move(name);
  result.described.rows = tensor.dim() > 1 ? static_cast<uint64_t>(tensor.size(0)) : 1;
  result.described.columns = static_cast<uint64_t>(tensor.numel()) / std::max<uint64_t>(result.described.rows, 1);
  return result;
}

template <class Norm>
void add_statistics(std::vector<module_tensor>& all, const std::string& prefix, const torch::nn::Module& of) {
  auto* norm = const_cast<Norm*>(of.as<Norm>());
  if (norm == nullptr || !norm->running_mean.defined())
    return;
  if (!norm->options.momentum())
    throw std::runtime_error{
      fmt::format("the batch norm {} has no momentum, and so weights all batches alike: give it one", prefix)};
  for (auto& [name, tensor] : {std::pair{"running_mean", norm->running_mean}, {"running_var", norm->running_var}}) {
    auto x = described(prefix + name, tensor);
    x.described.mean = tensor[0].template item<double>();
    x.described.is_statistic = true;
    x.described.momentum = *norm->options.momentum();
    all.push_back(std::move(x));
  }
  norm->options.momentum(1.0);
}

} // namespace

std::vector<module_tensor> tensors_of(const torch::nn::Module& x, const given_parameters& told) {
  std::vector<module_tensor> result, statistics;
  std::set<const void*> seen; // tied weights are one
  torch::NoGradGuard none;
  for (auto& each : x.named_modules()) {
    const auto prefix = each.key().empty() ? "" : each.key() + ".";
    for (auto& its : each.value()->named_parameters(false)) {
      if (!seen.insert(its.value().unsafeGetTensorImpl()).second)
        continue;
      auto found = described(prefix + its.key(), its.value());
      if (auto said = told.find(found.described.name); said != told.end()) {
        found.described.tensor = said->second.tensor;
        found.described.bound = said->second.bound;
        found.described.mean = said->second.bound == 0 ? its.value().flatten()[0].item<double>() : 0;
      } else {
        set_beginning(found.described, its.value(), *each.value());
      }
      result.push_back(std::move(found));
    }
    add_statistics<torch::nn::BatchNorm1dImpl>(statistics, prefix, *each.value());
    add_statistics<torch::nn::BatchNorm2dImpl>(statistics, prefix, *each.value());
    add_statistics<torch::nn::BatchNorm3dImpl>(statistics, prefix, *each.value());
  }
  std::ranges::stable_partition(result, [](auto& its) { return its.described.tensor != cut::replicated; });
  std::ranges::move(statistics, std::back_inserter(result));
  return result;
}

namespace {

/// Parameters, and constants that are no masks or numbers.
void convert(torch::nn::Module& x, torch::ScalarType to) {
  torch::NoGradGuard none;
  for (auto tensors : {x.parameters(), x.buffers()})
    for (auto& each : tensors)
      if (each.is_floating_point())
        each.set_data(each.to(to));
}

} // namespace

module_instance::module_instance(const module_plan& plan, precision as, shard tensor) : made_(plan.make(tensor)) {
  const auto type = scalar_of(as);
  convert(*made_.module, type);
  for (auto& each : tensors_of(*made_.module, plan.told)) {
    if (each.described.is_statistic)
      batch_statistics_.push_back(torch::zeros_like(each.tensor));
    else
      ++learning_;
    torch::NoGradGuard none;
    each.tensor.set_data(view_of(nullptr, each.tensor.sizes(), type));
    tensors_.push_back(std::move(each.tensor));
  }
}

void module_instance::look_at(const std::byte* w, bool trains) {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    auto* place = trains && i >= learning_ ? batch_statistics_[i - learning_].data_ptr() : const_cast<std::byte*>(w);
    tensors_[i].storage().unsafeGetStorageImpl()->set_data_ptr_noswap({place, at::kCPU});
    w += tensors_[i].nbytes();
  }
  if (trains != made_.module->is_training())
    made_.module->train(trains);
}

std::shared_ptr<module_instance> module_instances::take(precision as, shard tensor) {
  const kind wanted{as, tensor.index, tensor.count};
  std::unique_ptr<module_instance> found;
  {
    std::scoped_lock lock{guard_};
    if (auto& free = free_[wanted]; !free.empty()) {
      found = std::move(free.back());
      free.pop_back();
    }
  }
  if (found == nullptr)
    found = std::make_unique<module_instance>(plan_, as, tensor);
  return {found.release(), [all = shared_from_this(), wanted](module_instance* x) {
            std::scoped_lock lock{all->guard_};
            all->free_[wanted].emplace_back(x);
          }};
}

} // namespace ringmaster::training
