#include "tools/memory_limit.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <sys/mman.h>
#include <thread>

namespace ringmaster {

namespace {

using buffers = std::vector<std::vector<float>>;

/// One thread's part: reads every input element of it once, writes every output element once.
void pass(const buffers& inputs, buffers& outputs, uint32_t part, uint32_t parts) {
  auto in_count = inputs.front().size(), out_count = outputs.front().size();
  auto in_begin = in_count * part / parts, in_end = in_count * (part + 1) / parts;
  auto out_begin = out_count * part / parts, out_end = out_count * (part + 1) / parts;
  constexpr uint64_t tile = 2048;
  float sums[tile];
  std::fill(sums, sums + tile, 0.0f);
  auto out = out_begin;
  auto steps = std::max<uint64_t>(1, (std::max(in_end - in_begin, out_end - out_begin) + tile - 1) / tile);
  for (uint64_t s = 0; s < steps; ++s) {
    auto from = in_begin + (in_end - in_begin) * s / steps, to = in_begin + (in_end - in_begin) * (s + 1) / steps;
    for (auto& input : inputs) {
      const float* at = input.data() + from;
      for (uint64_t i = 0; i < to - from; ++i)
        sums[i] += at[i];
    }
    auto last = out_begin + (out_end - out_begin) * (s + 1) / steps;
    for (auto& output : outputs)
      std::copy(sums, sums + (last - out), output.data() + out);
    out = last;
  }
}

} // namespace

double memory_limit_us(uint32_t ranks, uint64_t input_bytes, uint64_t output_bytes, uint32_t samples) {
  buffers inputs(ranks, std::vector<float>(std::max<uint64_t>(input_bytes / 4, 1), 1.0f));
  buffers outputs(ranks, std::vector<float>(std::max<uint64_t>(output_bytes / 4, 1), 0.0f));
  auto parts = std::max(1u, std::thread::hardware_concurrency());
  std::vector<double> times;
  std::atomic<uint32_t> round{0}, ended{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> others; // they spin: what is measured is memory, not waking
  for (uint32_t part = 1; part < parts; ++part)
    others.emplace_back([&, part] {
      for (uint32_t seen = 0; !stop;) {
        if (round == seen)
          continue;
        seen = round;
        if (!stop)
          pass(inputs, outputs, part, parts);
        ++ended;
      }
    });
  for (uint32_t i = 0; i < samples + 2; ++i) {
    auto start = std::chrono::steady_clock::now();
    ended = 0;
    ++round;
    pass(inputs, outputs, 0, parts);
    while (ended != parts - 1) {
    }
    if (i >= 2)
      times.push_back(std::chrono::duration<double, std::micro>{std::chrono::steady_clock::now() - start}.count());
  }
  stop = true;
  ++round;
  for (auto& x : others)
    x.join();
  return *std::min_element(times.begin(), times.end());
}

} // namespace ringmaster
