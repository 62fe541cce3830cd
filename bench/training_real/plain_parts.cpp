#include "bench/training_real/plain_parts.hpp"

#include <limits>

namespace ringmaster::training {

namespace {

/// The modules' tensors in their order, statistics last.
std::vector<plain_tensor> tensors_in_order(const torch::nn::Module& x) {
  std::vector<plain_tensor> result;
  for (auto& each : x.parameters())
    result.push_back(each.dim() == 2 ? transposed(each) : same_as(each));
  for (auto& each : x.buffers())
    if (each.is_floating_point())
      result.push_back(same_as(each));
  return result;
}

template <class Module>
plain_part part(const std::shared_ptr<Module>& x) {
  return {x, [x](torch::Tensor in) { return x->forward(in); }, tensors_in_order(*x)};
}

torch::nn::Sequential linear_part(int64_t inputs, int64_t outputs, bool relu) {
  torch::nn::Sequential x;
  if (relu)
    x->push_back(torch::nn::ReLU());
  x->push_back(torch::nn::Flatten());
  x->push_back(torch::nn::Linear(inputs, outputs));
  return x;
}

torch::nn::Sequential pooled_part(int64_t from, int64_t to, int64_t padding) {
  return torch::nn::Sequential(torch::nn::Conv2d(torch::nn::Conv2dOptions(from, to, 5).padding(padding)),
                               torch::nn::ReLU(), torch::nn::MaxPool2d(2));
}

torch::nn::Sequential normed_part(int64_t from, int64_t to, int64_t kernel, int64_t stride) {
  return torch::nn::Sequential(
    torch::nn::Conv2d(torch::nn::Conv2dOptions(from, to, kernel).stride(stride).padding(kernel / 2)),
    torch::nn::BatchNorm2d(to), torch::nn::ReLU());
}

struct plain_residual : torch::nn::Module {
  explicit plain_residual(int64_t channels)
    : first(register_module("first", normed_part(channels, channels, 3, 1))),
      second(register_module("second", normed_part(channels, channels, 3, 1))) {}
  torch::Tensor forward(const torch::Tensor& x) { return x + second->forward(first->forward(x)); }

  torch::nn::Sequential first, second;
};

struct plain_embedding : torch::nn::Module {
  plain_embedding(int64_t positions, int64_t width)
    : bytes(register_module("bytes", torch::nn::Embedding(256, width))),
      places(register_module("places", torch::nn::Embedding(positions, width))) {}
  torch::Tensor forward(const torch::Tensor& x) { return bytes(x.to(torch::kLong)) + places(torch::arange(x.size(1))); }

  torch::nn::Embedding bytes, places;
};

struct plain_attention : torch::nn::Module {
  plain_attention(int64_t positions, int64_t width, int64_t heads)
    : norm(register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})))),
      attention(register_module("attention", torch::nn::MultiheadAttention(width, heads))),
      later(torch::full({positions, positions}, -std::numeric_limits<double>::infinity()).triu(1)) {}
  torch::Tensor forward(const torch::Tensor& x) {
    const auto in = norm(x).transpose(0, 1);
    return x + std::get<0>(attention(in, in, in, torch::Tensor{}, false, later.to(x.dtype()))).transpose(0, 1);
  }

  torch::nn::LayerNorm norm;
  torch::nn::MultiheadAttention attention;
  torch::Tensor later;
};

/// Query, key and value one behind the other there, head by head here.
plain_tensor by_heads(torch::Tensor x, int64_t heads) {
  const auto each = x.size(0) / 3 / heads;
  return {x,
          [=](const torch::Tensor& ours) { // [inputs, heads, 3, each], a bias without inputs
            return ours.view({-1, heads, 3, each}).permute({2, 1, 3, 0}).reshape(x.sizes());
          },
          [=](const torch::Tensor& theirs) {
            return theirs.view({3, heads, each, -1}).permute({3, 1, 0, 2}).reshape({-1, 3 * heads * each});
          }};
}

plain_part attention_part(int64_t positions, int64_t width, int64_t heads) {
  auto x = std::make_shared<plain_attention>(positions, width, heads);
  auto& its = *x->attention;
  return {x,
          [x](torch::Tensor in) { return x->forward(in); },
          {by_heads(its.in_proj_weight, heads), by_heads(its.in_proj_bias, heads), transposed(its.out_proj->weight),
           same_as(x->norm->weight), same_as(x->norm->bias), same_as(its.out_proj->bias)}};
}

plain_part feed_forward_part(int64_t width, int64_t hidden) {
  torch::nn::LayerNorm norm(torch::nn::LayerNormOptions({width}));
  torch::nn::Linear up(width, hidden), down(hidden, width);
  torch::nn::Sequential all(norm, up, torch::nn::GELU(), down);
  return {all.ptr(),
          [all](torch::Tensor x) mutable { return x + all->forward(x); },
          {transposed(up->weight), same_as(up->bias), transposed(down->weight), same_as(norm->weight),
           same_as(norm->bias), same_as(down->bias)}};
}

plain_part output_part(int64_t width) {
  torch::nn::LayerNorm norm(torch::nn::LayerNormOptions({width}));
  torch::nn::Linear to(width, 256);
  torch::nn::Sequential all(norm, to);
  return {all.ptr(),
          [all](torch::Tensor x) mutable { return all->forward(x); },
          {transposed(to->weight), same_as(norm->weight), same_as(norm->bias), same_as(to->bias)}};
}

} // namespace

plain_tensor same_as(torch::Tensor x) {
  return {x, [x](const torch::Tensor& ours) { return ours.view_as(x); }, [](const torch::Tensor& its) { return its; }};
}

plain_tensor transposed(torch::Tensor x) {
  return {x,
          [x](const torch::Tensor& ours) {
            return ours.view({x.size(1), x.size(0)}).t();
          },
          [](const torch::Tensor& its) { return its.t(); }};
}

std::vector<plain_part> plain_perceptron(std::span<const uint64_t> sizes) {
  std::vector<plain_part> result;
  for (size_t i = 0; i + 1 < sizes.size(); ++i)
    result.push_back(
      part(linear_part(static_cast<int64_t>(sizes[i]), static_cast<int64_t>(sizes[i + 1]), i > 0).ptr()));
  return result;
}

std::vector<plain_part> plain_lenet() {
  return {part(pooled_part(1, 6, 2).ptr()), part(pooled_part(6, 16, 0).ptr()), part(linear_part(400, 120, false).ptr()),
          part(linear_part(120, 84, true).ptr()), part(linear_part(84, 10, true).ptr())};
}

std::vector<plain_part> plain_resnet9() {
  return {part(normed_part(3, 16, 7, 4).ptr()),       part(normed_part(16, 32, 3, 2).ptr()),
          part(std::make_shared<plain_residual>(32)), part(normed_part(32, 64, 3, 2).ptr()),
          part(normed_part(64, 128, 3, 2).ptr()),     part(std::make_shared<plain_residual>(128)),
          part(linear_part(128, 128, false).ptr()),   part(linear_part(128, 10, true).ptr())};
}

std::vector<plain_part> plain_bytes(const byte_transformer& x) {
  const auto positions = static_cast<int64_t>(x.positions), width = static_cast<int64_t>(x.width);
  auto embedding = std::make_shared<plain_embedding>(positions, width);
  std::vector<plain_part> result{{embedding,
                                  [embedding](torch::Tensor in) { return embedding->forward(in); },
                                  {same_as(embedding->bytes->weight), same_as(embedding->places->weight)}}};
  for (uint64_t i = 0; i < x.blocks; ++i) {
    result.push_back(attention_part(positions, width, static_cast<int64_t>(x.heads)));
    result.push_back(feed_forward_part(width, static_cast<int64_t>(x.hidden)));
  }
  result.push_back(output_part(width));
  return result;
}

} // namespace ringmaster::training
