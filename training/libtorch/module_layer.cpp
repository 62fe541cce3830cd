#include "training/libtorch/module_layer.hpp"

#include "messages/errc.hpp"
#include "training/libtorch/module_instances.hpp"

#include <torch/autograd.h>

#include <algorithm>
#include <numeric>

namespace ringmaster::training {

namespace {

/// A forward that autograd has watched. Tensors are views of the rank's memory: it goes before that does.
struct watched_forward {
  const layer* of = nullptr;
  pass at;
  std::shared_ptr<module_instance> by;
  torch::Tensor x, y;

  bool serves(const layer* whose, const pass& now) const {
    return of == whose && now.weights != 0 && at.weights == now.weights && at.as == now.as && at.samples == now.samples
           && at.tensor == now.tensor;
  }
};

class layer_of_module final : public layer {
public:
  explicit layer_of_module(module_plan plan) : instances_(std::make_shared<module_instances>(std::move(plan))) {
    const auto made = this->plan().make({});
    for (auto& each : tensors_of(*made.module, this->plan().told))
      parameters_.push_back(std::move(each.described));
    inputs_ = std::accumulate(this->plan().sample.begin(), this->plan().sample.end(), int64_t{1}, std::multiplies{});
    torch::NoGradGuard none;
    made.module->eval();
    outputs_ = made.forward(torch::zeros(sizes(1), torch::kFloat32)).numel();
    made.module->train();
    samples_min_ = std::ranges::any_of(parameters_, &parameter::is_statistic) && !takes_one(made) ? 2 : 1;
  }

  std::string name() const override { return plan().name; }
  std::string_view making() const override { return "libtorch"; }
  uint64_t inputs() const override { return static_cast<uint64_t>(inputs_); }
  uint64_t outputs() const override { return static_cast<uint64_t>(outputs_); }
  uint64_t samples_min() const override { return samples_min_; }
  std::span<const parameter> parameters() const override { return parameters_; }
  caf::error cannot_share(uint32_t ranks) const override {
    if (ranks == 1)
      return caf::none;
    if (!plan().cannot_share)
      return invalid(fmt::format("it has no cut for {} tensor-parallel ranks", ranks));
    auto why = plan().cannot_share(ranks);
    return why ? why : layer::cannot_share(ranks);
  }

  void forward(const pass& at, const std::byte* x, const std::byte* w, std::byte* y) const override {
    said_by(name(), [&] {
      if (at.trains && at.keepsake != nullptr && at.weights != 0) {
        auto watched = watch(at, x, w);
        write(at, watched->y.detach(), y);
        *at.keepsake = std::move(watched);
        return;
      }
      torch::NoGradGuard none;
      const auto by = instances_->take(at.as, at.tensor);
      by->look_at(w, at.trains);
      write(at, by->forward(view_of(x, sizes(at.samples), scalar_of(at.as))), y);
    });
  }

  void backward(const pass& at, const std::byte* x, const std::byte* w, const std::byte* by_output,
                std::byte* by_weight, std::byte* by_input) const override {
    said_by(name(), [&] {
      auto watched = at.keepsake ? std::static_pointer_cast<watched_forward>(*at.keepsake) : nullptr;
      if (watched == nullptr || !watched->serves(this, at))
        watched = watch(at, x, w);
      const bool is_last = by_weight != nullptr && by_input != nullptr;
      back(*watched, by_output, by_weight, by_input, is_last);
      if (at.keepsake != nullptr)
        *at.keepsake = is_last || at.weights == 0 ? nullptr : std::move(watched);
    });
  }

private:
  const module_plan& plan() const { return instances_->plan(); }
  /// Whether its norms have more than one number a channel in a single sample.
  bool takes_one(const made_module& made) const {
    try {
      made.forward(torch::zeros(sizes(1), torch::kFloat32));
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }
  std::vector<int64_t> sizes(uint64_t samples) const {
    std::vector<int64_t> result{static_cast<int64_t>(samples)};
    result.insert(result.end(), plan().sample.begin(), plan().sample.end());
    return result;
  }

  std::shared_ptr<watched_forward> watch(const pass& at, const std::byte* x, const std::byte* w) const {
    auto result = std::make_shared<watched_forward>();
    result->of = this;
    result->at = at;
    result->at.keepsake = nullptr;
    result->by = instances_->take(at.as, at.tensor);
    result->by->look_at(w, true);
    result->x = view_of(x, sizes(at.samples), scalar_of(at.as)).requires_grad_();
    result->y = result->by->forward(result->x);
    return result;
  }

  void write(const pass& at, const torch::Tensor& from, std::byte* to) const {
    if (from.numel() != static_cast<int64_t>(at.samples) * outputs_)
      throw std::runtime_error{
        fmt::format("{} samples gave {} numbers, where one has given {}", at.samples, from.numel(), outputs_)};
    view_of(to, from.sizes(), scalar_of(at.as)).copy_(from);
  }

  /// Writes the gradients that are wanted; the graph ends with the last ones.
  static void back(const watched_forward& of, const std::byte* by_output, std::byte* by_weight, std::byte* by_input,
                   bool is_last) {
    const auto type = scalar_of(of.at.as);
    std::vector<torch::Tensor> by;
    const auto& tensors = of.by->tensors();
    if (by_weight != nullptr)
      by.assign(tensors.begin(), tensors.begin() + static_cast<std::ptrdiff_t>(of.by->learning()));
    if (by_input != nullptr)
      by.push_back(of.x);
    std::vector<torch::Tensor> found(by.size());
    if (of.y.requires_grad() && !by.empty())
      found = torch::autograd::grad({of.y}, by, {view_of(by_output, of.y.sizes(), type)}, !is_last, false, true);
    auto put = [&](const torch::Tensor& gradient, const torch::Tensor& like, std::byte* to) {
      auto room = view_of(to, like.sizes(), type);
      gradient.defined() ? room.copy_(gradient) : room.zero_();
    };
    for (size_t i = 0; by_weight != nullptr && i < tensors.size(); ++i) {
      if (i < of.by->learning())
        put(found[i], tensors[i], by_weight);
      else
        put(tensors[i] * (static_cast<double>(of.at.samples) / static_cast<double>(of.at.global_batch)), tensors[i],
            by_weight);
      by_weight += tensors[i].nbytes();
    }
    if (by_input != nullptr)
      put(found.back(), of.x, by_input);
  }

  std::shared_ptr<module_instances> instances_;
  std::vector<parameter> parameters_;
  int64_t inputs_ = 0, outputs_ = 0;
  uint64_t samples_min_ = 1;
};

} // namespace

std::unique_ptr<const layer> module_layer(module_plan plan) {
  const auto name = plan.name;
  return said_by(name, [&] { return std::make_unique<layer_of_module>(std::move(plan)); });
}

} // namespace ringmaster::training
