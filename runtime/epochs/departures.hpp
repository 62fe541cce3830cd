#pragma once

#include "messages/ids.hpp"
#include "runtime/invariants/ensure.hpp"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ringmaster {

/// Members that were asked to leave.
///
///   asked --nothing is in flight--> gone                              (policy "shrink")
///   asked --nothing is in flight--> being replaced --a spare--> gone  (policy "replace")
///     |                                   |
///     +-------- stays: taken back, no spare, or the end --------------+
class departures {
public:
  using reasons = std::map<device_id, std::string>;

  /// Asked, or being replaced.
  bool contains(device_id device) const { return asked_.count(device) != 0 || is_being_replaced(device); }
  bool is_being_replaced(device_id device) const { return replaced_.count(device) != 0; }
  bool any_asked() const { return !asked_.empty(); }
  bool any_being_replaced() const { return !replaced_.empty(); }
  const reasons& asked() const { return asked_; }

  void ask(reasons all) { asked_ = std::move(all); }
  /// Returns whether the device had been asked.
  bool take_back(device_id device) { return asked_.erase(device) != 0; }
  reasons take_asked() { return std::exchange(asked_, {}); }

  /// `what`: the sentence for the record once the device is gone.
  void start_replacing(device_id device, std::string what) {
    const bool is_new = replaced_.emplace(device, std::move(what)).second;
    ensure(is_new && asked_.count(device) == 0, "a member is replaced once");
  }
  /// Its replacement ends. None: it was not being replaced.
  std::optional<std::string> end_replacing(device_id device) {
    auto node = replaced_.extract(device);
    return node ? std::optional{std::move(node.mapped())} : std::nullopt;
  }

  /// All of them stay.
  std::vector<device_id> keep_all() {
    std::vector<device_id> result;
    for (auto* members : {&replaced_, &asked_})
      for (auto& x : std::exchange(*members, {}))
        result.push_back(x.first);
    return result;
  }

private:
  reasons asked_;    ///< Each with its reason.
  reasons replaced_; ///< They work until a spare has taken their rank.
};

} // namespace ringmaster
