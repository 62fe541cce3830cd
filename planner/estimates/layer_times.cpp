// What each term is and where it comes from: docs/cost_models.md.
#include "planner/estimates/layer_times.hpp"

#include "planner/estimates/exchange_times.hpp"
#include "runtime/invariants/ensure.hpp"

#include <algorithm>

namespace ringmaster::training {

namespace {

constexpr double flash_backward = 2.5; ///< Products of its backward, to those of its forward.
constexpr double backward_kernels = 2; ///< Of each product forward.

/// Seconds of a device's work and its host's, side by side.
double beside(double device, double host, double unhidden) {
  return std::max(device, host) + unhidden * std::min(device, host);
}

/// Seconds of work on the device, forward and backward; without collectives.
struct device_times {
  double products = 0, products_backward = 0;
  double core = 0, core_backward = 0;           ///< Scores, softmax, dropout, context.
  double split = 0, split_backward = 0;         ///< Of these, of keys in blocks: see layer_times.
  double made_again = 0;                        ///< Of the products: queries, keys and values out of latent ones.
  double attention = 0, attention_backward = 0; ///< Of all, what comes before the network.
  double attention_products_backward = 0;       ///< The same of the products.
  double elements = 0, elements_backward = 0;   ///< Norms, residuals, dropouts, activation functions, biases, copies.
  double elements_again = 0;                    ///< Of these, norms and activation functions.

  double forward() const { return products + core + elements; }
  double backward() const { return products_backward + core_backward + elements_backward; }
};

/// A layer on one of its ranks.
class layer_work {
public:
  layer_work(const language_model& m, const gpu_system& on, const training_setting& how, layer_kind kind)
    : m_(m), on_(on), how_(how), kind_(kind), rows_(static_cast<double>(how.micro_batch) * m.sequence / how.cp),
      tensor_(how.tp), rate_(on.product_rate(how.computed_in)),
      cast_(bytes_of(how.computed_in).cast * on.element_traffic) {}

  device_times times() {
    ensure(how_.tp > 0 && how_.cp > 0 && how_.ep > 0, "all degrees are given");
    if (kind_.windowed && m_.linear.value_heads > 0) {
      linear_attention();
    } else {
      attention_products();
      how_.attention == attention_kernel::flash ? flash_core() : unfused_core();
    }
    const auto shared = how_.sequence_parallel ? tensor_ : 1, more_norms = std::max(2.0, 1.0 * m_.norms) - 2;
    elements(rows_ * m_.hidden * (22 + 4 * more_norms) / shared, 6 + more_norms);
    again(rows_ * m_.hidden * 8 / shared, 2); // of two norms, what they read and write
    x_.attention = x_.forward();
    x_.attention_backward = x_.backward();
    x_.attention_products_backward = x_.products_backward;
    kind_.experts ? expert_network() : dense_network();
    ensure(!(x_.forward() < x_.attention) && !(x_.backward() < x_.attention_backward),
           "attention is a part of a layer's work");
    return x_;
  }

private:
  /// Positions of the micro-batch that this rank sends to experts.
  double dispatched_rows() const { return rows_ / tensor_; }

  /// A product of `rows` positions with a matrix of n x k, which reaches a part of the rate.
  void product(double rows, double n, double k, double reached = 1) {
    const auto seconds = 2 * rows * n * k / (rate_ * reached);
    const auto cast = cast_ * rows / on_.memory_bandwidth;
    x_.products += seconds + cast * k + on_.kernel_s;
    x_.products_backward += backward_kernels * (seconds + on_.kernel_s) + cast * n;
  }

  void elements(double bytes, double kernels) {
    const auto seconds = bytes * on_.element_traffic / on_.memory_bandwidth + kernels * on_.kernel_s;
    x_.elements += seconds;
    x_.elements_backward += 2 * seconds;
  }

  /// Of `elements`, what selective recomputation does once more.
  void again(double bytes, double kernels) {
    x_.elements_again += bytes * on_.element_traffic / on_.memory_bandwidth + kernels * on_.kernel_s;
  }

  void attention_products() {
    const double h = m_.hidden, heads = m_.heads / tensor_;
    if (auto& x = m_.latent; x.key_value_rank > 0) {
      const auto queries = heads * (m_.head_size + x.rotary_size),
                 keys = static_cast<double>(x.key_value_rank + x.rotary_size);
      product(rows_, x.query_rank > 0 ? x.query_rank + keys : queries + keys, h); // queries are latent, or are not
      const auto before = x_.products;
      if (x.query_rank > 0)
        product(rows_, queries, x.query_rank);
      product(rows_, heads * (m_.head_size + x.value_size), x.key_value_rank);
      x_.made_again = x_.products - before;
      product(rows_, h, heads * x.value_size);
      return;
    }
    const auto made = (m_.gated_attention ? 2 : 1) * heads + 2 * m_.key_value_heads_on(how_.tp);
    product(rows_, made * m_.head_size, h);
    product(rows_, h, heads * m_.head_size);
  }

  /// Keys in chunks of some positions, as kernels for it have them: products within a chunk, and with the state.
  void linear_attention() {
    constexpr double chunk = 64;
    auto& x = m_.linear;
    const double h = m_.hidden;
    product(rows_, (2 * x.keys() + 2 * x.values() + 2.0 * x.value_heads) / tensor_, h);
    product(rows_, h, x.values() / tensor_);
    elements(rows_ * 2 * bf16_bytes * (2 * x.keys() + x.values()) / tensor_, 1); // the convolution
    const double heads = x.value_heads / tensor_, k = x.key_size, v = x.value_size;
    const auto flops = 2 * rows_ * heads * (chunk * (3 * k + 2 * v) + 3 * k * v);
    x_.core = flops / (on_.peak_flops * on_.flash_efficiency) + on_.kernel_s;
    x_.core_backward = flash_backward * flops / (on_.peak_flops * on_.flash_efficiency) + 2 * on_.kernel_s;
  }

  void unfused_core() {
    const double s = m_.sequence, pairs = how_.micro_batch * s * s / how_.cp, a = m_.heads / tensor_;
    const bool fused_softmax = how_.micro_batch * m_.heads / how_.tp % 4 == 0;
    const auto scores = 2 * pairs * a * m_.head_size / (on_.peak_flops * on_.attention_efficiency) + on_.kernel_s;
    const auto traffic = a * pairs * (fused_softmax ? 11 : 25) / on_.memory_bandwidth;
    x_.core = 2 * scores + traffic + 2 * on_.kernel_s;
    x_.core_backward = 4 * scores + 2 * traffic + 2 * on_.kernel_s;
  }

  void flash_core() {
    auto flops = 2 * rows_ * m_.keys_seen(kind_.windowed) * (m_.heads / tensor_) * m_.key_and_value_size();
    if (kind_.windowed) // each of its small heads scores all keys, on all of the ranks
      flops += 2 * rows_ * m_.keys_seen(false) * m_.indexer.size();
    // of each block of keys of the context's ranks, whose outputs are merged in float32
    const double blocks = how_.cp;
    const auto merged = (blocks - 1) * 2 * 4 * rows_ * (m_.heads / tensor_) * m_.head_size / on_.memory_bandwidth;
    x_.core = flops / (on_.peak_flops * on_.flash_efficiency) + blocks * on_.kernel_s + merged;
    x_.core_backward = flash_backward * flops / (on_.peak_flops * on_.flash_efficiency) + 2 * blocks * on_.kernel_s
                       + merged;
    x_.split = (blocks - 1) * on_.kernel_s + merged;
    x_.split_backward = 2 * (blocks - 1) * on_.kernel_s + merged;
  }

  /// Activation functions and what is beside them, by elements of the networks' width.
  double activation_bytes(double width) const {
    const auto unfused = m_.unfused_activation && !on_.launches_whole(how_.computed_in) ? on_.unfused_activation_bytes
                                                                                        : 0;
    return ((m_.gated ? 6 : 6.5) + unfused) * width;
  }

  void dense_network() {
    const double h = m_.hidden, w = m_.width / tensor_;
    product(rows_, (m_.gated ? 2 : 1) * w, h);
    product(rows_, h, w);
    elements(rows_ * activation_bytes(w), 0);
    again(rows_ * activation_bytes(w), 1);
  }

  /// Each rank's experts get their shares of all positions of the ranks that they are divided among.
  void expert_network() {
    auto& x = m_.experts;
    const double h = m_.hidden, w = x.width, up = m_.gated ? 2 : 1;
    const auto taken = dispatched_rows() * x.chosen * x.most(how_.ep);
    const auto of_one = taken * how_.ep / x.count; // positions of an expert
    const auto reached = of_one / (of_one + on_.expert_rows);
    product(taken, up * w, h, reached);
    product(taken, h, w, reached);
    elements(taken * (activation_bytes(w) + on_.dispatch_traffic * bf16_bytes * h), 6);
    again(taken * activation_bytes(w), 1);
    if (x.shared_width > 0) {
      const auto shared = x.shared_width / tensor_;
      product(rows_, up * shared, h);
      product(rows_, h, shared);
      elements(rows_ * activation_bytes(shared), 0);
      again(rows_ * activation_bytes(shared), 1);
    }
    elements(4 * dispatched_rows() * x.count * 4, 8); // the router's scores, float32
  }

  const language_model& m_;
  const gpu_system& on_;
  const training_setting& how_;
  layer_kind kind_;
  double rows_, tensor_, rate_, cast_;
  device_times x_;
};

/// A layer's collectives, in each direction.
struct exchanges {
  exchange_parts exposed, hidden;
};

/// Where a part of the micro-batches, `paired`, has others' work beside it to hide dispatch and combine behind.
exchanges exchanges_of(const language_model& m, const gpu_system& on, const training_setting& how, layer_kind kind,
                       const device_times& work, double paired) {
  const auto rows = static_cast<double>(how.micro_batch) * m.sequence / how.cp;
  const auto row_bytes = bf16_bytes * m.hidden;
  exchanges x;
  auto set = [&](double exchange_parts::*part, double seconds, double exposed) {
    x.exposed.*part = exposed;
    x.hidden.*part = seconds - exposed;
  };
  const auto reduced = (m.parallel || (kind.experts && m.experts.shared_width == 0) ? 1 : 2)
                       * tensor_all_reduce_time(row_bytes * rows, how.tp, on);
  // hidden behind products, within a domain only
  const bool within = how.tp <= on.devices_per_host;
  set(&exchange_parts::tensor, reduced,
      within ? std::max(reduced * on.exposed_tensor, reduced - work.products) : reduced);
  if (kind.experts) {
    const auto moved = 2 * m.experts.most(how.ep) // what is dropped is not sent
                       * dispatch_time(rows / how.tp, row_bytes, m.experts, how.ep, on);
    const auto beside = (work.forward() + work.backward()) / 2; // of another micro-batch
    set(&exchange_parts::experts, moved,
        (1 - paired) * moved + paired * std::max(moved * on.exposed_expert, moved - beside));
  }
  if (how.cp > 1) { // beside the blocks' scores
    // A window does not shorten the way: of the first half of the positions the keys before are a hop away, of the
    // second half, which lies the other way round, all hops but one.
    const auto hops = how.cp - 1.0;
    const auto ring = context_exchange_time(key_bytes(m, how, how.micro_batch), hops, how.cp * how.tp, on);
    // Keys and values go around beside the scores with the block at hand. In the backward the gradients by a block are
    // a hop after it, both beside the next block's scores, and the last hop, home, beside nothing. Half of both ways
    // counts in each direction.
    const auto hop = ring / hops, back = 2 * ring + hop;
    const auto block_core = work.core / (hops + 1), block_back = work.core_backward / (hops + 1);
    const auto exposed = hops * std::max(0.0, hop - block_core) + 2 * std::max(0.0, hop - block_back)
                         + (hops - 1) * std::max(0.0, 2 * hop - block_back) + hop;
    set(&exchange_parts::context, (ring + back) / 2, exposed / 2);
  }
  return x;
}

/// Of the host's thread. A layer that goes beside another micro-batch's is launched in pieces.
double launch_time(const language_model& m, const gpu_system& on, const training_setting& how, layer_kind kind,
                   double paired) {
  auto seconds = (kind.experts ? 0 : on.launch_s) + on.launch_tensor_s * (how.tp - 1);
  if (how.attention == attention_kernel::unfused && how.micro_batch * m.heads / how.tp % 4 != 0)
    seconds += on.launch_unfused_s;
  if (kind.experts) {
    const auto each = on.launch_expert_s + (how.computed_in == number_format::bf16 ? 0 : on.launch_expert_cast_s);
    const auto left = on.launches_whole(how.computed_in) ? on.whole_graph_launches
                                                         : on.expert_launches * (1 + paired * (on.paired_launches - 1));
    seconds += left * (on.launch_experts_s + each * m.experts.count / how.ep);
  }
  return seconds * on.launch_scale * (how.again == recomputation::full ? 1.5 : 1);
}

/// A layer's times. A part of its micro-batches runs beside another's work.
struct whole_layer_times {
  exchanges moved;
  double forward, backward; ///< On the device, with what nothing hides.
  double seconds;           ///< Of both, with the host.
};

whole_layer_times whole_layer(const language_model& m, const gpu_system& on, const training_setting& how,
                              layer_kind kind, const device_times& x, double paired) {
  whole_layer_times result{exchanges_of(m, on, how, kind, x, paired), 0, 0, 0};
  const auto exposed = result.moved.exposed.sum();
  result.forward = x.forward() + exposed;
  const auto selective = how.attention == attention_kernel::flash ? x.made_again + x.elements_again : x.core;
  const auto again = how.again == recomputation::full        ? result.forward
                     : how.again == recomputation::selective ? selective
                                                             : 0;
  result.backward = x.backward() + exposed + again;
  result.seconds = beside(result.forward + result.backward, launch_time(m, on, how, kind, paired),
                          kind.experts ? on.unhidden_experts : on.unhidden);
  return result;
}

} // namespace

double padded_vocabulary(const language_model& m, uint32_t tensor) {
  ensure(tensor > 0, "a vocabulary is divided among at least one rank");
  const auto block = 128 * tensor;
  return static_cast<double>((m.vocabulary + block - 1) / block * block);
}

layer_times layer_times_of(const language_model& m, const gpu_system& on, const training_setting& how,
                           layer_kind kind) {
  const auto x = layer_work{m, on, how, kind}.times();
  auto way = whole_layer(m, on, how, kind, x, how.paired_part());
  if (kind.experts && how.paired_part() > 0)
    if (auto apart = whole_layer(m, on, how, kind, x, 0); apart.seconds < way.seconds)
      way = apart;
  ensure(!(way.seconds < 0), "a layer takes no negative time");
  layer_times result;
  result.exposed = way.moved.exposed;
  result.hidden = way.moved.hidden;
  const auto stretched = way.seconds / (way.forward + way.backward);
  result.forward = stretched * way.forward;
  result.backward = stretched * way.backward;
  result.by_weight = stretched * x.products_backward / backward_kernels;
  result.core = stretched * x.core;
  result.core_backward = stretched * x.core_backward;
  result.split = stretched * x.split;
  result.split_backward = stretched * x.split_backward;
  result.network = 1 - x.attention / x.forward();
  result.network_backward = 1 - x.attention_backward / x.backward();
  result.network_by_weight = 1 - x.attention_products_backward / x.products_backward;
  return result;
}

end_times end_times_of(const language_model& m, const gpu_system& on, const training_setting& how) {
  const double rows = static_cast<double>(how.micro_batch) * m.sequence / how.cp, h = m.hidden;
  const auto v = padded_vocabulary(m, how.tp) / how.tp;
  const auto rate = on.product_rate(number_format::bf16); // logits stay in bf16
  auto loss = 3 * (2 * rows * v * h / rate + on.kernel_s) + rows * v * on.logit_bytes / on.memory_bandwidth
              + 2 * tensor_all_reduce_time(bf16_bytes * rows * h, how.tp, on);
  const auto embedding = rows * h * 30 / on.memory_bandwidth;
  if (m.multi_token > 0) {
    const auto layer = layer_times_of(m, on, how, {m.experts.count > 0, false});
    loss += m.multi_token * (loss + layer.forward + layer.backward + 3 * 4 * rows * h * h / how.tp / rate);
  }
  const auto launch = on.launch_ends_s * on.launch_scale;
  if (how.pp == 1)
    return {0, beside(loss + embedding, launch, on.unhidden)};
  return {beside(embedding, launch / 2, on.unhidden), beside(loss, launch / 2, on.unhidden)};
}

} // namespace ringmaster::training
