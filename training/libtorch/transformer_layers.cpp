#include "messages/errc.hpp"
#include "runtime/schedule/collective.hpp"
#include "training/libtorch/libtorch_models.hpp"
#include "training/libtorch/module_layer.hpp"

#include <fmt/format.h>
#include <torch/torch.h>

#include <cmath>
#include <limits>

namespace ringmaster::training {

namespace {

constexpr int64_t byte_values = 256;

/// What a rank of those that share a layer has of its width, heads and so on.
struct share_of {
  share_of(uint64_t of, shard tensor) : all(static_cast<int64_t>(of)) {
    const auto mine = block_of({}, of, tensor.count, tensor.index);
    first = static_cast<int64_t>(mine.offset);
    count = static_cast<int64_t>(mine.count);
  }
  int64_t all, first, count;
};

/// Layer norm, which all ranks have.
struct norm_module : torch::nn::Module {
  explicit norm_module(int64_t width)
    : norm_weight(register_parameter("norm_weight", torch::ones({width}))),
      norm_bias(register_parameter("norm_bias", torch::zeros({width}))) {}
  torch::Tensor normed(const torch::Tensor& x) {
    return torch::layer_norm(x, norm_weight.sizes(), norm_weight, norm_bias);
  }

  torch::Tensor norm_weight, norm_bias;
};

/// Rows of a table for the bytes, and for where they stand; a rank has some columns of both, and of y.
struct embedding_module : torch::nn::Module {
  embedding_module(const byte_transformer& of, shard tensor)
    : width(of.width, tensor), bytes(register_parameter("bytes", torch::zeros({byte_values, width.count}))),
      places(register_parameter("places", torch::zeros({static_cast<int64_t>(of.positions), width.count}))) {}
  torch::Tensor forward(const torch::Tensor& x) {
    const auto y = torch::embedding(bytes, x.to(torch::kLong)) + places;
    return width.count == width.all ? y
                                    : torch::constant_pad_nd(y, {width.first, width.all - width.first - width.count});
  }

  share_of width;
  torch::Tensor bytes, places;
};

/// y = x + attention of norm(x). A rank has whole heads: columns of the first matrix, which lie head by head, each with
/// query, key and value, and rows of the second. The first rank adds x and the bias.
struct attention_module : norm_module {
  attention_module(const byte_transformer& of, shard tensor)
    : norm_module(static_cast<int64_t>(of.width)), heads(of.heads, tensor),
      size(static_cast<int64_t>(of.width / of.heads)), adds(tensor.index == 0) {
    const auto width = static_cast<int64_t>(of.width), mine = heads.count * size;
    qkv_weight = register_parameter("qkv_weight", torch::zeros({width, 3 * mine}));
    qkv_bias = register_parameter("qkv_bias", torch::zeros({3 * mine}));
    out_weight = register_parameter("out_weight", torch::zeros({mine, width}));
    out_bias = register_parameter("out_bias", torch::zeros({width}));
    const auto positions = static_cast<int64_t>(of.positions);
    constexpr auto never = -std::numeric_limits<double>::infinity();
    later = register_buffer("later", torch::full({positions, positions}, never).triu(1));
  }

  torch::Tensor forward(const torch::Tensor& x) {
    const auto samples = x.size(0), positions = x.size(1), width = x.size(2);
    const auto all = torch::addmm(qkv_bias, normed(x).view({samples * positions, width}), qkv_weight)
                       .view({samples, positions, heads.count, 3, size})
                       .permute({3, 0, 2, 1, 4});
    const auto scores
      = torch::matmul(all[0] / std::sqrt(static_cast<double>(size)), all[1].transpose(2, 3)).add_(later);
    const auto weights = torch::softmax(scores, 3);
    const auto seen = torch::matmul(weights, all[2]).transpose(1, 2).reshape({samples * positions, heads.count * size});
    const auto y = adds ? torch::addmm(out_bias, seen, out_weight) : torch::mm(seen, out_weight);
    return adds ? x + y.view_as(x) : y;
  }

  share_of heads;
  int64_t size;
  bool adds;
  torch::Tensor qkv_weight, qkv_bias, out_weight, out_bias, later;
};

/// y = x + gelu(norm(x) V + a) W + b; a rank has columns of V and a, and rows of W. The first adds x and b.
struct feed_forward_module : norm_module {
  feed_forward_module(const byte_transformer& of, shard tensor)
    : norm_module(static_cast<int64_t>(of.width)), adds(tensor.index == 0) {
    const auto width = static_cast<int64_t>(of.width), mine = share_of{of.hidden, tensor}.count;
    up_weight = register_parameter("up_weight", torch::zeros({width, mine}));
    up_bias = register_parameter("up_bias", torch::zeros({mine}));
    down_weight = register_parameter("down_weight", torch::zeros({mine, width}));
    down_bias = register_parameter("down_bias", torch::zeros({width}));
  }

  torch::Tensor forward(const torch::Tensor& x) {
    const auto h = torch::gelu(torch::addmm(up_bias, normed(x).view({-1, x.size(2)}), up_weight));
    const auto y = adds ? torch::addmm(down_bias, h, down_weight) : torch::mm(h, down_weight);
    return adds ? x + y.view_as(x) : y;
  }

  bool adds;
  torch::Tensor up_weight, up_bias, down_weight, down_bias;
};

/// y = norm(x) W + b; a rank has rows of W, and the first adds b.
struct output_module : norm_module {
  output_module(const byte_transformer& of, shard tensor)
    : norm_module(static_cast<int64_t>(of.width)), width(of.width, tensor), adds(tensor.index == 0) {
    weight = register_parameter("weight", torch::zeros({width.count, byte_values}));
    bias = register_parameter("bias", torch::zeros({byte_values}));
  }

  torch::Tensor forward(const torch::Tensor& x) {
    const auto seen = normed(x).narrow(2, width.first, width.count).reshape({-1, width.count});
    const auto y = adds ? torch::addmm(bias, seen, weight) : torch::mm(seen, weight);
    return y.view({x.size(0), x.size(1), byte_values});
  }

  share_of width;
  bool adds;
  torch::Tensor weight, bias;
};

template <class Module>
std::unique_ptr<const layer> block_layer(const byte_transformer& of, std::string name, bool of_bytes,
                                         given_parameters told) {
  std::vector<int64_t> sample{static_cast<int64_t>(of.positions)};
  if (!of_bytes)
    sample.push_back(static_cast<int64_t>(of.width));
  const bool by_heads = std::is_same_v<Module, attention_module>;
  auto cannot_share = [=, heads = of.heads](uint32_t ranks) {
    return by_heads && heads % ranks != 0 ? invalid(fmt::format("{} ranks cannot share {} heads alike", ranks, heads))
                                          : caf::error{};
  };
  return module_layer({.name = std::move(name),
                       .sample = std::move(sample),
                       .make = [=](shard tensor) { return std::make_shared<Module>(of, tensor); },
                       .told = std::move(told),
                       .cannot_share = cannot_share});
}

double bound_of(uint64_t inputs) {
  return 1 / std::sqrt(static_cast<double>(inputs));
}

} // namespace

caf::expected<model_layers> layers_of(const byte_transformer& x) {
  if (x.positions == 0 || x.width == 0 || x.heads == 0 || x.hidden == 0 || x.width % x.heads != 0)
    return invalid(fmt::format("a transformer of {} positions, width {}, {} heads and {} hidden: none may be 0, and "
                               "heads must divide the width",
                               x.positions, x.width, x.heads, x.hidden));
  // Those that add to what goes through begin smaller, as there are many of them.
  const auto deep = 1 / std::sqrt(static_cast<double>(std::max<uint64_t>(2 * x.blocks, 1)));
  const auto in = bound_of(x.width);
  constexpr double table = 0.035; // a deviation of 0.02
  model_layers result;
  result.push_back(
    block_layer<embedding_module>(x, fmt::format("bytes {}x{}", x.positions, x.width), true,
                                  {{"bytes", {cut::columns, table}}, {"places", {cut::columns, table}}}));
  for (uint64_t i = 0; i < x.blocks; ++i) {
    result.push_back(block_layer<attention_module>(
      x, fmt::format("attention {}x{} {} heads", x.positions, x.width, x.heads), false,
      {{"qkv_weight", {cut::columns, in}}, {"qkv_bias", {cut::columns}}, {"out_weight", {cut::rows, in * deep}}}));
    result.push_back(block_layer<feed_forward_module>(x, fmt::format("feed-forward {}x{}", x.width, x.hidden), false,
                                                      {{"up_weight", {cut::columns, in}},
                                                       {"up_bias", {cut::columns}},
                                                       {"down_weight", {cut::rows, bound_of(x.hidden) * deep}}}));
  }
  result.push_back(block_layer<output_module>(x, fmt::format("next byte {}x{}", x.width, byte_values), false,
                                              {{"weight", {cut::rows, in}}}));
  return result;
}

} // namespace ringmaster::training
