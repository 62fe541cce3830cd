#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ringmaster::training {

/// The ranks that can go on. A window of neighbours, who mostly wait for each other, runs as long as one of them can;
/// then the next one, half of which is new, so that no rank is always at an edge. In a pipeline of thousands of ranks
/// each thus goes many steps while its state is in the caches (diamond tiling of stencils: Bondhugula et al. 2017).
class run_queue {
public:
  explicit run_queue(uint32_t world_size) : world_size_(world_size), blocks_(world_size / block + 2) {}

  /// Ranks in groups of `together` wait for each other most, and then for those `hop` before and after them. As long
  /// as it is not known it is 1 and 1; both divide the world.
  void arrange(uint32_t together, uint32_t hop) {
    together_ = together;
    hop_ = hop;
  }
  void push(uint32_t rank, std::coroutine_handle<> x) {
    blocks_[place_of(rank) / block].push_back(x);
    ++size_;
  }
  bool empty() const { return size_ == 0; }
  std::coroutine_handle<> pop() {
    while (starved())
      move();
    auto& its = blocks_[blocks_[window_].empty() ? window_ + 1 : window_];
    auto result = its.back();
    its.pop_back();
    --size_;
    return result;
  }

private:
  static constexpr uint32_t block = 32; ///< Ranks; half of the window.

  /// Groups that hop to each other side by side.
  uint32_t place_of(uint32_t rank) const {
    if (together_ == hop_)
      return rank;
    const auto hops = rank / hop_, within = rank % hop_;
    return (within / together_ * (world_size_ / hop_) + hops) * together_ + within % together_;
  }
  bool starved() const { return blocks_[window_].empty() && blocks_[window_ + 1].empty(); }
  /// To the last block and back again.
  void move() {
    if (window_ == (up_ ? blocks_.size() - 2 : 0))
      up_ = !up_;
    else
      window_ += up_ ? 1 : size_t{0} - 1;
  }

  uint32_t world_size_;
  uint32_t together_ = 1, hop_ = 1;
  std::vector<std::vector<std::coroutine_handle<>>> blocks_;
  size_t size_ = 0;
  size_t window_ = 0; ///< This block and the next one.
  bool up_ = true;
};

} // namespace ringmaster::training
