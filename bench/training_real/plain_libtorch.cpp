#include "bench/training_real/plain_libtorch.hpp"

#include "bench/training_real/plain_parts.hpp"
#include "messages/errc.hpp"

#include <stdexcept>

namespace ringmaster::training {

struct plain_libtorch::parts {
  const training_job& job;
  torch::ScalarType type;
  std::vector<int64_t> sample; ///< Sizes of one.
  std::vector<plain_part> all;
  std::unique_ptr<torch::optim::Optimizer> update;
  uint64_t step = 0;
};

namespace {

std::vector<plain_part> parts_of(const plain_model& x) {
  switch (x.kind) {
    case plain_model::which::lenet: return plain_lenet();
    case plain_model::which::resnet9: return plain_resnet9();
    case plain_model::which::bytes: return plain_bytes(x.bytes);
    default: return plain_perceptron(x.sizes);
  }
}

std::vector<int64_t> sample_of(const plain_model& x, const training_job& job) {
  if (x.kind == plain_model::which::lenet)
    return {1, 28, 28};
  if (x.kind == plain_model::which::resnet9)
    return {3, 32, 32};
  return {static_cast<int64_t>(job.layers.front()->inputs())};
}

std::unique_ptr<torch::optim::Optimizer> optimizer_of(const optimizer& x, std::vector<torch::Tensor> parameters) {
  if (x.kind == optimizer_kind::sgd)
    return std::make_unique<torch::optim::SGD>(parameters,
                                               torch::optim::SGDOptions(x.rate).weight_decay(x.weight_decay));
  const std::tuple betas{x.beta1, x.beta2};
  if (x.kind == optimizer_kind::adam)
    return std::make_unique<torch::optim::Adam>(
      parameters, torch::optim::AdamOptions(x.rate).betas(betas).eps(x.epsilon).weight_decay(x.weight_decay));
  return std::make_unique<torch::optim::AdamW>(
    parameters, torch::optim::AdamWOptions(x.rate).betas(betas).eps(x.epsilon).weight_decay(x.weight_decay));
}

/// A layer's first weights into the tensors of its part.
void begin(const training_job& job, uint32_t layer, const plain_part& part, torch::ScalarType type) {
  const auto parameters = job.layers[layer]->parameters();
  if (parameters.size() != part.tensors.size())
    throw std::logic_error{"a plain part has other tensors than its layer"};
  std::vector<std::byte> w(job.layers[layer]->elements({}) * bytes_of(job.as));
  set_first_weights(job, layer, {}, {}, w.data());
  auto* at = w.data();
  torch::NoGradGuard none;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto count = static_cast<int64_t>(parameters[i].elements());
    auto& its = part.tensors[i];
    its.tensor.copy_(its.of_ours(torch::from_blob(at, {count}, torch::TensorOptions{type})));
    at += parameters[i].elements() * bytes_of(job.as);
  }
}

} // namespace

plain_libtorch::plain_libtorch(const plain_model& what, const training_job& job)
  : parts_(new parts{job, job.as == precision::float32 ? torch::kFloat32 : torch::kFloat64, sample_of(what, job),
                     parts_of(what), nullptr}) {
  std::vector<torch::Tensor> parameters;
  for (uint32_t l = 0; l < parts_->all.size(); ++l) {
    auto& part = parts_->all[l];
    part.module->to(parts_->type);
    begin(job, l, part, parts_->type);
    for (auto& each : part.module->parameters())
      parameters.push_back(each);
  }
  parts_->update = optimizer_of(job.update, std::move(parameters));
}

plain_libtorch::~plain_libtorch() = default;

double plain_libtorch::run_step() {
  auto& job = parts_->job;
  const auto batch = job.shape.global_batch;
  std::vector<float> inputs(batch * job.layers.front()->inputs());
  std::vector<uint32_t> labels(batch * job.labels_each);
  if (auto problem = job.data->fill(parts_->step++, {0, batch}, inputs, labels))
    throw std::runtime_error{render(problem)};
  auto sizes = parts_->sample;
  sizes.insert(sizes.begin(), static_cast<int64_t>(batch));
  auto y = torch::from_blob(inputs.data(), sizes, torch::kFloat32).to(parts_->type);
  for (auto& each : parts_->all)
    y = each.forward(y);
  const auto wanted = torch::from_blob(labels.data(), {static_cast<int64_t>(labels.size())}, torch::kInt32);
  const auto loss = torch::cross_entropy_loss(y.view({wanted.numel(), -1}), wanted.to(torch::kLong));
  parts_->update->zero_grad();
  loss.backward();
  parts_->update->step();
  return loss.item<double>();
}

std::vector<std::vector<double>> plain_libtorch::parameters() const {
  std::vector<std::vector<double>> result;
  torch::NoGradGuard none;
  for (auto& part : parts_->all)
    for (auto& each : part.tensors) {
      const auto ours = each.to_ours(each.tensor).contiguous().to(torch::kFloat64);
      result.emplace_back(ours.data_ptr<double>(), ours.data_ptr<double>() + ours.numel());
    }
  return result;
}

} // namespace ringmaster::training
