// Compares a step of training in a strategy's program on one rank with the same model in plain libtorch: the same BLAS,
// one thread, the same samples. Rounds alternate; the median of each counts. Times are processor times, which equal the
// elapsed times on an idle machine.
//
//   ./run train --help                              # configures with libtorch
//   cmake --build build/release --target training_real
//   build/release/training_real [MODEL [ROUNDS]]        # mlp, lenet, resnet9, bytes; all of them, 15 rounds
#include "bench/training_real/plain_libtorch.hpp"
#include "messages/errc.hpp"
#include "training/computed/computed_world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>

using namespace ringmaster;
using namespace ringmaster::training;

namespace {

constexpr uint64_t batch = 64;

/// One batch, again and again.
class one_batch final : public batch_source {
public:
  one_batch(uint64_t width, uint32_t labels_each, bool bytes) : width_(width), labels_each_(labels_each) {
    uint64_t state = 1;
    auto next = [&] { return state = state * 6364136223846793005 + 1442695040888963407; };
    for (uint64_t i = 0; i < batch * width; ++i)
      inputs_.push_back(bytes ? static_cast<float>(next() >> 56) : static_cast<float>(next() >> 40) * 0x1p-24f);
    for (uint64_t i = 0; i < batch * labels_each; ++i)
      labels_.push_back(static_cast<uint32_t>((next() >> 40) % 10));
  }

  caf::error fill(uint64_t, range samples, std::span<float> inputs, std::span<uint32_t> labels) const override {
    std::copy_n(inputs_.data() + samples.begin * width_, inputs.size(), inputs.data());
    std::copy_n(labels_.data() + samples.begin * labels_each_, labels.size(), labels.data());
    return caf::none;
  }

private:
  uint64_t width_, labels_each_;
  std::vector<float> inputs_;
  std::vector<uint32_t> labels_;
};

struct measured {
  std::string_view name;
  plain_model model;
  int steps; ///< Of a round.
};

training_job job_of(const plain_model& x) {
  training_job job;
  switch (x.kind) {
    case plain_model::which::lenet: job.layers = lenet(); break;
    case plain_model::which::resnet9: job.layers = resnet9(); break;
    case plain_model::which::bytes: job.layers = std::move(*layers_of(x.bytes)); break;
    default: job.layers = libtorch_perceptron(x.sizes);
  }
  const bool bytes = x.kind == plain_model::which::bytes;
  job.labels_each = bytes ? static_cast<uint32_t>(x.bytes.positions) : 1;
  job.shape.layers = static_cast<uint32_t>(job.layers.size());
  job.shape.global_batch = job.shape.micro_batch = batch;
  job.strategy = strategy_of("ddp");
  job.update = {.kind = optimizer_kind::sgd, .rate = 0.01};
  job.seed = 1;
  job.data = std::make_shared<one_batch>(job.layers.front()->inputs(), job.labels_each, bytes);
  return job;
}

double processor_ms() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

/// Behind some that bring their memory back into the caches, which the other way has filled.
template <class Step>
double milliseconds_each(int steps, Step step) {
  for (int i = 0; i < 1 + steps / 10; ++i)
    step();
  const auto begun = processor_ms();
  for (int i = 0; i < steps; ++i)
    step();
  return (processor_ms() - begun) / steps;
}

double median(std::vector<double> x) {
  std::ranges::nth_element(x, x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2));
  return x[x.size() / 2];
}

void measure(const measured& what, int rounds) {
  const auto job = job_of(what.model);
  computed_world world{job, 1, 512 << 20};
  plain_libtorch plain{what.model, job};
  double ours_loss = 0, plain_loss = 0;
  auto our_step = [&] {
    auto losses = world.run_step();
    if (!losses) {
      fmt::print(stderr, "training_real: {}\n", render(losses.error()));
      std::exit(1);
    }
    ours_loss = losses->loss / static_cast<double>(losses->samples);
  };
  auto plain_step = [&] { plain_loss = plain.run_step(); };
  std::vector<double> ours, plains, ratios;
  for (int i = 0; i < rounds; ++i) {
    ours.push_back(milliseconds_each(what.steps, our_step));
    plains.push_back(milliseconds_each(what.steps, plain_step));
    ratios.push_back(ours.back() / plains.back());
  }
  fmt::print("{:8} {:10.3f} ms {:10.3f} ms   {:.3f}   loss {:.4f} and {:.4f}\n", what.name, median(ours),
             median(plains), median(ratios), ours_loss, plain_loss);
}

} // namespace

int main(int argc, char** argv) {
  const measured all[] = {{"mlp", {plain_model::which::perceptron, {784, 128, 10}}, 200},
                          {"lenet", {plain_model::which::lenet}, 40},
                          {"resnet9", {plain_model::which::resnet9}, 40},
                          {"bytes", {.kind = plain_model::which::bytes}, 4}};
  const std::string_view wanted = argc > 1 ? argv[1] : "";
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 15;
  const auto known = std::ranges::any_of(all, [&](auto& x) { return wanted.empty() || x.name == wanted; });
  if (!known || rounds < 1 || argc > 3) {
    fmt::print(stderr, "usage: training_real [mlp | lenet | resnet9 | bytes [ROUNDS]]\n");
    return 2;
  }
  fmt::print("{:8} {:>13} {:>13}   ratio   a step of {} samples\n", "", "one rank", "libtorch", batch);
  for (auto& each : all)
    if (wanted.empty() || each.name == wanted)
      measure(each, rounds);
}
