#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace ringmaster::training {

/// Calls `work(i)` for every i below `count`, on one thread per processor, at most four, the calling thread included.
/// Each thread takes the next index as soon as it is free. Returns when all calls have returned.
template <class Work>
void parallel_for(size_t count, const Work& work) {
  constexpr unsigned threads_max = 4;
  std::atomic<size_t> next = 0;
  auto run = [&] {
    for (auto i = next++; i < count; i = next++)
      work(i);
  };
  std::vector<std::jthread> others;
  for (auto i = 1u; i < std::clamp(std::thread::hardware_concurrency(), 1u, threads_max); ++i)
    others.emplace_back(run);
  run();
}

} // namespace ringmaster::training
