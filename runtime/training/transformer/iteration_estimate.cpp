// Where the terms come from, and how well they predict: docs/cost_models.md.
#include "runtime/training/transformer/iteration_estimate.hpp"

#include "runtime/training/strategies/strategies.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace ringmaster::training {

namespace {

constexpr double bf16_bytes = 2;
constexpr double gradient_bytes = 4; ///< Megatron-LM's.
constexpr double logit_bytes = 4;
constexpr double backward_kernels = 2; ///< Of each product forward.

double padded_vocabulary(const gpt& m, uint32_t tensor) {
  const auto block = 128 * tensor;
  return static_cast<double>((m.vocabulary + block - 1) / block * block);
}

/// What of a device's and its host's work, side by side, takes.
double beside(double device, double host, const gpu_system& on) {
  return std::max(device, host) + on.unhidden * std::min(device, host);
}

double product_time(double m, double n, double k, const gpu_system& on) {
  return 2 * m * n * k / (on.peak_flops * on.matrix_efficiency) + on.kernel_s;
}

bool fused_softmax(const gpt& m, const parallel_setting& how) {
  return how.micro_batch * m.heads / how.shape.tensor % 4 == 0;
}

/// A layer's work on the device, forward and by the weights; without collectives.
struct device_times {
  double weights = 0, weights_backward = 0; ///< The four products with weights.
  double core = 0, core_backward = 0;       ///< Scores, softmax, dropout, context.
  double elements = 0;                      ///< Norms, residuals, dropouts; activation functions, biases, copies.
};

device_times device_times_of(const gpt& m, const gpu_system& on, const parallel_setting& how) {
  const double h = m.hidden, s = m.sequence, a = m.heads, t = how.shape.tensor, b = how.micro_batch, rows = b * s;
  device_times x;
  const std::array<std::array<double, 2>, 4> products{{{3 * h / t, h}, {h, h / t}, {4 * h / t, h}, {h, 4 * h / t}}};
  for (auto [n, k] : products) {
    x.weights += product_time(rows, n, k, on);
    x.weights_backward += product_time(rows, k, n, on) + product_time(n, k, rows, on);
  }
  const auto scores = 2 * b * s * s * h / t / (on.peak_flops * on.attention_efficiency) + on.kernel_s;
  const auto traffic = a * b * s * s / t * (fused_softmax(m, how) ? 11 : 25) / on.memory_bandwidth;
  x.core = 2 * scores + traffic + 2 * on.kernel_s;
  x.core_backward = 4 * scores + 2 * traffic + 2 * on.kernel_s;
  x.elements = rows * h * (22 / (how.sequence_parallel ? t : 1) + 26 / t) / on.memory_bandwidth + 6 * on.kernel_s;
  return x;
}

/// Parameters that a rank of the first stage has.
double parameters_on_rank(const gpt& m, const mesh& shape) {
  const double h = m.hidden, layers = static_cast<double>(m.layers) / shape.pipeline;
  return (12 * h * h * layers + padded_vocabulary(m, shape.tensor) * h) / shape.tensor;
}

/// What a stage's rank holds of micro-batches: their activations, and the gradients by outputs whose weights' half
/// is postponed.
struct held_micro_batches {
  double activations = 0, gradients = 0;
};

held_micro_batches held_by_first(const parallel_setting& how) {
  const double p = how.shape.pipeline, m = how.micro_batches();
  switch (how.schedule) {
    case pipeline_schedule::all_forwards_first: return {m, 1};
    case pipeline_schedule::interleaved_1f1b: return {std::min(m, p * (1 + (p - 1) / (p * how.chunks))), 1};
    case pipeline_schedule::zb_h2: return {std::min(m, 2 * p - 1), 1};
    case pipeline_schedule::dualpipe: return {std::min(m, p + 1), 2};
    default: return {std::min(m, p), 1};
  }
}

held_micro_batches held_by_last(const parallel_setting& how) {
  const double p = how.shape.pipeline, m = how.micro_batches();
  switch (how.schedule) {
    case pipeline_schedule::one_f_one_b: return {1, 1};
    case pipeline_schedule::zb_h1: return {std::min(m, p), std::min(m, p)};
    case pipeline_schedule::zb_h2: return {std::min(m, 2 * p - 1), std::min(m, 2 * p - 1)};
    case pipeline_schedule::zb_v: return {std::min(m, p), std::min(m, p) / 2};
    default: return held_by_first(how);
  }
}

double memory_of(const gpt& m, const parallel_setting& how) {
  const auto& shape = how.shape;
  const double t = shape.tensor, layers = static_cast<double>(m.layers) / shape.pipeline;
  const auto rows = static_cast<double>(how.micro_batch) * m.sequence, hidden_bytes = bf16_bytes * rows * m.hidden;
  const auto copies = how.schedule == pipeline_schedule::dualpipe ? 2 : 1;
  const auto layer = activation_bytes(m, how.micro_batch, shape.tensor, how.sequence_parallel, how.again);
  auto always = copies * parameters_on_rank(m, shape) * zero_bytes(how.zero, shape.data, gradient_bytes);
  always += gradient_bytes * 12.0 * m.hidden * m.hidden / t; // a layer's gradient, before it is added or scattered
  always += 4 * hidden_bytes;                                // an output, a summand, and what is gathered
  if (how.again != recomputation::none)                      // a layer's, while it is run again
    always += activation_bytes(m, how.micro_batch, shape.tensor, how.sequence_parallel, recomputation::none);
  if (how.zero == 3) // two layers whole, the next one while the one before is used
    always += 2 * bf16_bytes * 12.0 * m.hidden * m.hidden / t;
  auto with = [&](const held_micro_batches& held) {
    return layers * (held.activations * layer + held.gradients * hidden_bytes / (how.sequence_parallel ? t : 1));
  };
  const auto logits = logit_bytes * rows * padded_vocabulary(m, shape.tensor)
                      / t; // of one micro-batch, on the last stage
  const bool both_ends = shape.pipeline == 1 || how.schedule == pipeline_schedule::zb_v
                         || how.schedule == pipeline_schedule::dualpipe;
  const auto first = with(held_by_first(how)) + (both_ends ? logits : 0), last = with(held_by_last(how)) + logits;
  return always + std::max(first, last);
}

/// Seconds of filling and draining, beside hops; F, I and W are a stage's forward and its backward's halves. ZB-H2
/// and ZB-V start their ranks one after the other; theirs are fitted to what the simulator finds where F, I and W
/// differ.
double bubble_of(const parallel_setting& how, const layer_times& layer, double layers, double plain) {
  const double p = how.shape.pipeline;
  const auto forward = layers * layer.forward, by_weight = layers * layer.by_weight, backward = layers * layer.backward,
             by_input = backward - by_weight;
  switch (how.schedule) {
    case pipeline_schedule::interleaved_1f1b: return plain / how.chunks;
    case pipeline_schedule::zb_h1: return (p - 1) * std::max(forward, forward + by_input - by_weight);
    case pipeline_schedule::zb_h2: return (p - 1) * std::max(forward, forward + by_input - 2 * by_weight);
    case pipeline_schedule::zb_v:
      return (p - 1) / 2 * std::max(forward, std::min(forward + by_input - by_weight, 2 * by_input - forward));
    case pipeline_schedule::dualpipe: return (p / 2 - 1) * std::max(0.0, forward + 2 * backward - 3 * by_weight);
    default: return plain;
  }
}

/// How often the gradients' all_reduce, of two halves, is paid: ZeRO 2 scatters each micro-batch's gradients, ZeRO 3
/// gathers the weights for each forward and backward, too.
double gradient_exchanges(const parallel_setting& how) {
  const double m = how.micro_batches();
  return how.zero == 2 ? (m + 1) / 2 : how.zero == 3 ? 3 * m / 2 : 1;
}

} // namespace

double layers_kept_by_first(const gpt& m, const parallel_setting& how) {
  return held_by_first(how).activations * m.layers / how.shape.pipeline;
}

std::string_view name_of(pipeline_schedule x) {
  static const known_strategy* const rows[] = {
    &gpipe, &one_forward_one_backward, &interleaved, &zero_bubble_h1, &zero_bubble_h2, &zero_bubble_v, &dual_pipe};
  return rows[static_cast<size_t>(x)]->name;
}

double tensor_all_reduce_time(double bytes, uint32_t ranks, const gpu_system& on) {
  if (ranks == 1)
    return 0;
  auto within = [&](double k) { return 2 * (k - 1) / k * bytes / on.host_bandwidth; };
  const auto n = static_cast<double>(ranks);
  if (n <= on.devices_per_host)
    return on.host_latency_s + within(n);
  const auto hosts = n / on.devices_per_host;
  return 2 * on.host_latency_s + within(on.devices_per_host) + 2 * (hosts - 1) / hosts * bytes / on.network_bandwidth;
}

double gradient_all_reduce_time(double parameters, const gpu_system& on, const mesh& shape) {
  if (shape.data == 1)
    return 0;
  const double d = shape.data, t = shape.tensor, k = on.devices_per_host, bytes = bf16_bytes * parameters;
  const auto inside = shape.size() <= k ? d : std::min(d, std::max(1.0, std::floor(k / t)));
  const auto outside = d / inside;
  auto seconds = 2 * (inside - 1) / inside * bytes / on.host_bandwidth;
  if (outside > 1)
    seconds += 2 * (outside - 1) / outside * bytes * std::min(t, k) / on.network_bandwidth;
  return seconds;
}

double mirror_all_reduce_time(double parameters, const gpu_system& on, const mesh& shape) {
  const auto bytes = bf16_bytes * parameters;
  if (shape.size() <= on.devices_per_host)
    return bytes / on.host_bandwidth;
  return bytes * std::min<double>(shape.tensor, on.devices_per_host) / on.network_bandwidth;
}

layer_times layer_times_of(const gpt& m, const gpu_system& on, const parallel_setting& how) {
  const auto x = device_times_of(m, on, how);
  const auto rows = static_cast<double>(how.micro_batch) * m.sequence;
  layer_times result;
  result.exchange = 2 * tensor_all_reduce_time(bf16_bytes * rows * m.hidden, how.shape.tensor, on);
  const auto forward = x.weights + x.core + x.elements + result.exchange;
  const auto again = how.again == recomputation::full ? forward : how.again == recomputation::selective ? x.core : 0;
  const auto backward = x.weights_backward + x.core_backward + 2 * x.elements + result.exchange + again;
  const auto launch = (on.launch_s + on.launch_tensor_s * (how.shape.tensor - 1)
                       + (fused_softmax(m, how) ? 0 : on.launch_unfused_s))
                      * on.launch_scale * (how.again == recomputation::full ? 1.5 : 1);
  const auto stretched = beside(forward + backward, launch, on) / (forward + backward);
  result.forward = stretched * forward;
  result.backward = stretched * backward;
  result.by_weight = stretched * x.weights_backward / backward_kernels;
  return result;
}

end_times end_times_of(const gpt& m, const gpu_system& on, const parallel_setting& how) {
  const double rows = static_cast<double>(how.micro_batch) * m.sequence, h = m.hidden;
  const auto v = padded_vocabulary(m, how.shape.tensor) / how.shape.tensor;
  const auto loss = product_time(rows, v, h, on) + product_time(rows, h, v, on) + product_time(h, v, rows, on)
                    + rows * v * on.logit_bytes / on.memory_bandwidth
                    + 2 * tensor_all_reduce_time(bf16_bytes * rows * h, how.shape.tensor, on);
  const auto embedding = rows * h * 30 / on.memory_bandwidth;
  const auto launch = on.launch_ends_s * on.launch_scale;
  if (how.shape.pipeline == 1)
    return {0, beside(loss + embedding, launch, on)};
  return {beside(embedding, launch / 2, on), beside(loss, launch / 2, on)};
}

double hop_time(const gpt& m, const gpu_system& on, const parallel_setting& how) {
  const auto bytes = bf16_bytes * how.micro_batch * m.sequence * m.hidden;
  if (how.shape.size() <= on.devices_per_host)
    return on.hop_latency_s + bytes / on.host_bandwidth;
  return on.hop_latency_s + bytes / std::min<double>(how.shape.tensor, on.devices_per_host) / on.hop_bandwidth;
}

iteration_estimate estimate_iteration(const gpt& m, const gpu_system& on, const parallel_setting& how) {
  return estimate_iteration(m, on, how, layer_times_of(m, on, how), end_times_of(m, on, how));
}

iteration_estimate estimate_iteration(const gpt& m, const gpu_system& on, const parallel_setting& how,
                                      const layer_times& layer, const end_times& ends) {
  const double p = how.shape.pipeline, count = how.micro_batches(), layers = m.layers / p;
  const auto body = layers * (layer.forward + layer.backward);
  const auto chunks = how.schedule == pipeline_schedule::interleaved_1f1b ? how.chunks
                      : how.schedule == pipeline_schedule::zb_v           ? 2
                                                                          : 1;
  const auto hops = p == 1 ? 0 : 2 * hop_time(m, on, how);
  const auto slowest = body + std::max(ends.embedding, ends.loss);
  const auto plain_bubble = (p - 1) * body + std::min(ends.embedding, ends.loss);
  iteration_estimate result;
  result.bubble = (p == 1 ? 0 : bubble_of(how, layer, layers, plain_bubble)) + (p - 1) * hops;
  const auto copies = how.schedule == pipeline_schedule::dualpipe ? 2 : 1;
  const auto parameters = copies * parameters_on_rank(m, how.shape);
  auto gradients = gradient_all_reduce_time(parameters, on, how.shape) * gradient_exchanges(how);
  if (copies == 2)
    gradients += mirror_all_reduce_time(parameters, on, how.shape);
  if (p > 1) // the embedding is on the first and on the last stage
    gradients += mirror_all_reduce_time(padded_vocabulary(m, how.shape.tensor) * m.hidden / how.shape.tensor, on,
                                        how.shape);
  const auto updated = how.zero > 0 ? parameters / how.shape.data : parameters;
  result.seconds = count * (slowest + hops * chunks) + result.bubble + gradients
                   + updated * on.optimizer_bytes / on.memory_bandwidth + on.iteration_s;
  result.communication = count * (2 * layers * layer.exchange + hops * chunks) + gradients;
  result.memory_bytes = memory_of(m, how);
  result.mfu = flops_of(m, how.global_batch) / (on.peak_flops * how.shape.size() * result.seconds);
  return result;
}

} // namespace ringmaster::training
