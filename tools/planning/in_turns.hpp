#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace ringmaster {

/// `work(i)` for every i below `count`, in their order, by as many threads as there are processors, up to four; this
/// one is among them. Returns when all is done.
template <class Work>
void in_turns(size_t count, const Work& work) {
  std::atomic<size_t> next = 0;
  auto take_turns = [&] {
    for (auto i = next++; i < count; i = next++)
      work(i);
  };
  std::vector<std::jthread> others;
  for (uint32_t i = 1; i < std::clamp(std::thread::hardware_concurrency(), 1u, 4u); ++i)
    others.emplace_back(take_turns);
  take_turns();
}

} // namespace ringmaster
