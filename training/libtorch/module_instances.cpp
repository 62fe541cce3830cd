#include "training/libtorch/module_instances.hpp"

namespace ringmaster::training {

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
