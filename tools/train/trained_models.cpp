#include "tools/train/trained_models.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "training/layers/plain_layers.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster {

namespace {

using namespace training;

caf::expected<model_layers> make_perceptron(const data_set& data, const model_wishes& wishes) {
  TRY(sizes, perceptron_sizes(data, wishes));
  return perceptron(*sizes);
}

std::vector<trained_model>& known_models() {
  static std::vector<trained_model> all{
    {"mlp", "linear layers with ReLU between them, of --sizes", make_perceptron, false, true}};
  return all;
}

} // namespace

caf::expected<std::vector<uint64_t>> perceptron_sizes(const data_set& data, const model_wishes& wishes) {
  if (data.labels_each() != 1)
    return invalid(fmt::format("mlp is for images, and {} has {} labels a sample", data.name(), data.labels_each()));
  std::vector<uint64_t> sizes{data.shape().elements()};
  sizes.insert(sizes.end(), wishes.sizes.begin(), wishes.sizes.end());
  sizes.push_back(data.label_count());
  return sizes;
}

std::span<const trained_model> trained_models() {
  return known_models();
}

const trained_model* trained_model_of(std::string_view name) {
  auto& all = known_models();
  auto found = std::ranges::find(all, name, &trained_model::name);
  return found == all.end() ? nullptr : &*found;
}

void register_trained_model(const trained_model& added) {
  auto& all = known_models();
  auto found = std::ranges::find(all, added.name, &trained_model::name);
  if (found == all.end())
    all.push_back(added);
  else
    *found = added;
}

} // namespace ringmaster
