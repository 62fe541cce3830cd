// `ringmaster train` with layers that libtorch computes.
#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "tools/console/own_memory.hpp"
#include "tools/options/commands.hpp"
#include "tools/train/run_options.hpp"
#include "training/libtorch/libtorch_models.hpp"

#include <fmt/format.h>

namespace {

using namespace ringmaster;
using namespace ringmaster::training;

caf::expected<model_layers> make_perceptron(const data_set& data, const model_wishes& wishes) {
  TRY(sizes, perceptron_sizes(data, wishes));
  return libtorch_perceptron(*sizes);
}

/// A model for images of one size, with any number of labels.
template <model_layers (*Make)(uint64_t classes)>
caf::expected<model_layers> make_for(const char* name, const data_set& data, sample_shape shape, const char* found_in) {
  if (data.shape() != shape)
    return invalid(fmt::format("{} takes images of {}, and {} has {}: {}", name, shape.text(), data.name(),
                               data.shape().text(), found_in));
  return Make(data.label_count());
}

caf::expected<model_layers> make_lenet(const data_set& data, const model_wishes&) {
  return make_for<lenet>("lenet", data, {1, 28, 28},
                         "MNIST's files have these (--data DIR), and so do generated digits");
}

caf::expected<model_layers> make_resnet9(const data_set& data, const model_wishes&) {
  return make_for<resnet9>("resnet9", data, {3, 32, 32}, "CIFAR-10's binary files have these (--data DIR)");
}

caf::expected<model_layers> make_bytes(const data_set& data, const model_wishes& wishes) {
  if (data.labels_each() == 1)
    return invalid(fmt::format("bytes is for texts, and {} are images of {}", data.name(), data.shape().text()));
  return layers_of(byte_transformer{
    .positions = data.labels_each(), .width = wishes.width, .blocks = wishes.blocks, .hidden = 4 * wishes.width});
}

} // namespace

int main(int argc, char** argv) {
  keep_freed_memory();
  register_trained_model({"mlp", "linear layers with ReLU between them, of --sizes", make_perceptron, false, true});
  register_trained_model({"lenet", "LeNet-5, of digits of 28x28", make_lenet});
  register_trained_model({"resnet9", "convolutions with batch norm, two of them residual, of CIFAR-10's images",
                          make_resnet9});
  register_trained_model({"bytes", "a transformer that predicts a text's next byte", make_bytes, true});
  return train_for_real_command("ringmaster-train").run(std::vector<std::string>{argv + 1, argv + argc});
}
