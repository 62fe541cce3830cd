#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace ringmaster {

/// The bytes that a collective has received, by route.
class received_bytes {
public:
  void add(std::string_view route, uint64_t bytes) {
    total_ += bytes;
    auto row = std::find_if(by_route_.begin(), by_route_.end(), [=](auto& x) { return x.first == route; });
    if (row == by_route_.end())
      row = by_route_.insert(row, {route, 0});
    row->second += bytes;
  }
  void clear() { *this = {}; }
  uint64_t total() const { return total_; }

  /// Writes the rows of a report.
  template <class Message>
  void write_to(Message& x) const {
    for (auto& [route, bytes] : by_route_) {
      auto& row = *x.add_received();
      row.set_route(route.data(), route.size());
      row.set_bytes(bytes);
    }
  }

private:
  uint64_t total_ = 0;
  std::vector<std::pair<std::string_view, uint64_t>> by_route_;
};

} // namespace ringmaster
