#pragma once

#include <cstdint>
#include <deque>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string>
#include <utility>

namespace ringmaster {

/// Sentences about lost members: the latest, and the number of earlier ones.
class loss_log {
public:
  static constexpr size_t losses_max = 16;

  void add(std::string what) {
    latest_.push_back(std::move(what));
    if (latest_.size() > losses_max) {
      latest_.pop_front();
      ++forgotten_;
    }
  }
  bool empty() const { return latest_.empty(); }
  const std::string& latest() const { return latest_.back(); }
  std::string text() const {
    const auto all = fmt::format("{}", fmt::join(latest_, "; "));
    return forgotten_ == 0 ? all : fmt::format("after {} earlier losses: {}", forgotten_, all);
  }

private:
  std::deque<std::string> latest_;
  uint64_t forgotten_ = 0;
};

} // namespace ringmaster
