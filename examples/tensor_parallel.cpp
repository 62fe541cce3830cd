// Tensor parallelism by hand: what ranks gather, reduce and slice, with shapes, and what rank 0 sends for it. First
// four ranks that share their layers, then eight as 4 by 2: two groups of four, each with samples of its own.
//
//   build/release/examples/tensor_parallel
//   build/release/caf-run --local 4 -- build/release/examples/tensor_parallel    # devices of 4 node processes
// prints for four ranks, and then for eight,
//
//   4 ranks, 4 by 1                           goes in       comes out     bytes sent
//   all_reduce out of sends                   [40]          [40]                 240
//   all_reduce, the library's                 [40]          [40]                 240
//   ...
//   all results are right; the ranks have sent 9216 bytes, and the cluster has counted 9216
#include "actors/configuration/configuration.hpp"
#include "client/cluster.hpp"
#include "client/parallel/megatron_pair.hpp"
#include "client/parallel/naive_layers.hpp"
#include "client/parallel/own_collectives.hpp"
#include "client/parallel/placement.hpp"
#include "client/parallel/zero_3.hpp"
#include "runtime/configuration/places.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <thread>

using namespace ringmaster;
using namespace ringmaster::parallel;
using training::layer_cut;
using training::tensor_layout;

namespace {

constexpr uint32_t sharing = 4; // ranks that share a layer
constexpr uint64_t samples = 8, inputs = 8, hidden = 16, outputs = 4;
const training::cut_layer first{"first", inputs, hidden, layer_cut::columns},
  second{"second", hidden, outputs, layer_cut::rows};

/// Small whole numbers, so that sums are exact in any order.
tensor numbers(std::vector<uint64_t> shape, uint64_t seed) {
  tensor result{std::move(shape)};
  for (uint64_t i = 0; i < result.elements(); ++i)
    result.values()[i] = static_cast<float>((seed + 5 * i + i / 7) % 7) - 3;
  return result;
}

caf::expected<tensor> as_tensor(caf::expected<std::vector<float>> x) {
  if (!x)
    return std::move(x.error());
  const auto count = x->size();
  return tensor::of({count}, std::move(*x));
}

/// What one rank has seen.
struct findings {
  std::vector<std::string> lines;
  std::set<uint64_t> communicators;
  uint64_t bytes_sent = 0;
  caf::error problem; ///< The first one. It goes on: the others wait for its calls.

  void note(const char* what, tensor_group& over, const tensor& in, const caf::expected<tensor>& out,
            const tensor& right) {
    const auto bytes = over.bytes_sent() - std::exchange(noted_[&over], over.bytes_sent());
    bytes_sent += bytes;
    if (out)
      lines.push_back(fmt::format("{:<41} {:<13} {:<13} {:>10}", what, in.shape_text(), out->shape_text(), bytes));
    if (!problem && !out)
      problem = out.error();
    else if (!problem && *out != right)
      problem = make_error(errc::corrupt, fmt::format("{}: rank {} has a wrong result", what, over.rank()));
  }

private:
  std::map<const tensor_group*, uint64_t> noted_;
};

void show_collectives(findings& found, tensor_group& over) {
  const auto mine = numbers({40}, over.rank());
  const auto each = mine.elements() / over.size();
  tensor sum{{40}}, blocks{{40}}; // by plain loops
  for (uint32_t rank = 0; rank < over.size(); ++rank) {
    const auto its = numbers({40}, rank);
    for (uint64_t i = 0; i < its.elements(); ++i)
      sum.values()[i] += its.values()[i];
    std::copy_n(its.values().begin() + over.rank() * each, each, blocks.values().begin() + rank * each);
  }
  found.note("all_reduce out of sends", over, mine, as_tensor(own_all_reduce(over, mine.values())), sum);
  found.note("all_reduce, the library's", over, mine, as_tensor(over.all_reduce(mine.values())), sum);
  found.note("all_to_all out of sends", over, mine, as_tensor(own_all_to_all(over, mine.values())), blocks);
  found.note("all_to_all, the library's", over, mine, as_tensor(over.all_to_all(mine.values())), blocks);
}

void show_zero_3(findings& found, tensor_group& over) {
  const auto whole = numbers({3, 13}, 1);
  auto sum = whole;
  for (auto& each : sum.values())
    each *= static_cast<float>(over.size());
  const auto shard = *shard_of(whole, over.rank(), over.size());
  found.note("ZeRO-3: the parameter", over, shard, gather_parameter(over, shard, whole.shape()), whole);
  found.note("ZeRO-3: the gradients' sum", over, whole, reduce_gradient(over, whole),
             *shard_of(sum, over.rank(), over.size()));
}

/// Two layers, and what one rank alone computes of them: y = relu(x V + a) W + b.
struct whole_model {
  tensor v = numbers({inputs, hidden}, 1), a = numbers({hidden}, 2), w = numbers({hidden, outputs}, 3),
         b = numbers({outputs}, 4);

  tensor middle(const tensor& x) const {
    auto result = *linear_forward(x, v, a);
    for (auto& each : result.values())
      each = std::max(each, 0.F);
    return result;
  }
  linear_gradients by_first(const tensor& x, const tensor& by_y) const {
    const auto active = middle(x);
    auto by_middle = linear_backward(active, w, by_y)->x;
    for (uint64_t i = 0; i < active.elements(); ++i)
      by_middle.values()[i] *= active.values()[i] > 0;
    return *linear_backward(x, v, by_middle);
  }
};

/// `x` and `by_y` are the group's samples.
void show_naive(findings& found, tensor_group& over, const whole_model& model, const tensor& x) {
  const auto part = [&](const tensor& of) { return *part_of_last_axis(of, over.rank(), over.size()); };
  const auto y = *linear_forward(x, model.v, model.a), by_y = numbers(y.shape(), 5), features = part(x);
  found.note("naive: the layer's input", over, features, gather_input(over, features), x);
  const auto mine = *linear_forward(x, part(model.v), part(model.a));
  found.note("naive: the layer's output", over, mine, gather_output(over, mine), y);
  const auto slice = slice_output_gradient(over, by_y);
  found.note("naive: back through the output", over, by_y, slice, part(by_y));
  const auto by_x = linear_backward(x, part(model.v), *slice)->x;
  found.note("naive: back through the input", over, by_x, reduce_input_gradient(over, by_x),
             part(linear_backward(x, model.v, by_y)->x));
}

/// Returns the gradient by this rank's part of V.
tensor show_megatron(findings& found, tensor_group& over, const megatron_pair& mine, const whole_model& model,
                     const tensor& x, const tensor& by_y) {
  auto output = pair_forward(over, mine, x);
  found.note("Megatron's pair: the output", over, x, output ? output->y : caf::expected<tensor>{output.error()},
             *linear_forward(model.middle(x), model.w, model.b));
  if (!output)
    return {};
  auto back = pair_backward(over, mine, x, output->hidden, by_y);
  found.note("Megatron's pair: back to the input", over, by_y, back ? back->x : caf::expected<tensor>{back.error()},
             model.by_first(x, by_y).x);
  return back ? back->first_weight : tensor{};
}

caf::error run_rank(rank_communicator& world, client& host, const tensor_layout& layout, findings& found) {
  auto groups = split_world(world, layout);
  if (!groups)
    return std::move(groups.error());
  found.communicators = {groups->tensor.id().value, groups->data.id().value, world.id().value};
  tensor_group everybody{world, host}, shares{groups->tensor, host}, repeats{groups->data, host};
  show_collectives(found, everybody);

  const whole_model model;
  const auto x = numbers({samples, inputs}, 6), by_y = numbers({samples, outputs}, 7);
  const auto own = [&](const tensor& of) { return *samples_of(of, layout, world.rank()); };
  const auto columns = [&](const tensor& of) { return *parameter_of(of, first, layout, world.rank()); };
  show_naive(found, shares, model, own(x));
  const megatron_pair mine{columns(model.v), *part_of_last_axis(model.a, shares.rank(), shares.size()),
                           *parameter_of(model.w, second, layout, world.rank()), model.b};
  const auto gradient = show_megatron(found, shares, mine, model, own(x), own(by_y));
  auto sum = repeats.all_reduce(gradient.values());
  found.note("data groups: the gradient by V's part", repeats, gradient,
             sum ? tensor::of(gradient.shape(), *sum) : sum.error(), columns(model.by_first(x, by_y).w));
  show_zero_3(found, everybody);
  return found.problem;
}

caf::error run(caf::actor_system& system, client& host, uint32_t ranks) {
  auto layout = tensor_layout::of(ranks, sharing, {first, second}, samples);
  if (!layout)
    return std::move(layout.error());
  auto world = host.comm_init(ranks);
  if (!world)
    return std::move(world.error());
  std::vector<findings> found(ranks);
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      client mine{system, host.coordinator()};
      auto self = rank_communicator::attach(system, host.coordinator(), id_of(*world), rank);
      found[rank].problem = self ? run_rank(*self, mine, *layout, found[rank]) : std::move(self.error());
    });
  for (auto& thread : threads)
    thread.join();
  uint64_t sent = 0;
  std::set<uint64_t> communicators;
  for (auto& each : found) {
    if (each.problem)
      return each.problem;
    sent += each.bytes_sent;
    communicators.merge(each.communicators);
  }
  const auto title = fmt::format("{} ranks, {} by {}", ranks, sharing, ranks / sharing);
  fmt::print("{:<41} {:<13} {:<13} {:>10}\n", title, "goes in", "comes out", "bytes sent");
  for (auto& line : found.front().lines)
    fmt::print("{}\n", line);
  auto status = host.cluster_status();
  if (!status)
    return std::move(status.error());
  uint64_t counted = 0; // that ranks have received
  for (auto& each : status->communicators())
    if (communicators.contains(each.comm_id()))
      for (auto& way : each.routes())
        counted += way.bytes();
  fmt::print("all results are right; the ranks have sent {} bytes, and the cluster has counted {}\n", sent, counted);
  for (auto id : communicators) // the devices are free again
    if (auto problem = host.destroy(communicator_id{id}))
      return problem;
  return caf::none;
}

} // namespace

int main(int argc, char** argv) {
  configuration cfg;
  caf::error problem = cfg.read(argc, argv, find_configuration());
  if (!problem && cfg.cli_helptext_printed)
    return 0;
  if (!problem)
    problem = cfg.check_remainder();
  if (problem) {
    fmt::print(stderr, "tensor_parallel: {}\n", render(problem));
    return code_of(problem) == errc::io_error ? 1 : 2; // 2: what the command line or the file says cannot be
  }
  auto opts = cfg.values();
  opts.log.level = "warn"; // this program tells it itself
  opts.device.count = std::max(opts.device.count, 2 * sharing);
  caf::actor_system system{cfg};
  auto home = cluster::open(system, opts); // of our own, or the one that caf-run has started
  if (home) {
    client host{system, (*home)->coordinator()};
    problem = run(system, host, sharing);
    if (!problem)
      problem = run(system, host, 2 * sharing);
  } else {
    problem = home.error();
  }
  if (problem)
    fmt::print(stderr, "tensor_parallel: {}\n", render(problem));
  return problem ? 1 : 0;
}
