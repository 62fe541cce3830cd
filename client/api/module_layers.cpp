#include "training/libtorch/libtorch_models.hpp"
#include "training/libtorch/module_layer.hpp"

#include <ringmaster/module.hpp>

namespace ringmaster::api {

namespace {

training::nonlinearity nonlinearity_of(activation_function f) {
  switch (f) {
    case activation_function::relu: return training::nonlinearity::relu;
    case activation_function::tanh: return training::nonlinearity::tanh;
    case activation_function::none: break;
  }
  return training::nonlinearity::none;
}

layer_handle handle_of(std::unique_ptr<const training::layer> x) {
  return layer_handle{std::shared_ptr<const training::layer>{std::move(x)}};
}

} // namespace

layer_handle module_layer(std::string name, std::vector<int64_t> sample, std::function<module_instance()> make) {
  auto instance = [make = std::move(make)](training::shard) { return make(); };
  return handle_of(training::module_layer({std::move(name), std::move(sample), std::move(instance)}));
}

layer_handle libtorch_linear_layer(uint64_t inputs, uint64_t outputs, activation_function f) {
  return handle_of(training::libtorch_linear(inputs, outputs, nonlinearity_of(f)));
}

} // namespace ringmaster::api
