#pragma once

#include "messages/interfaces.hpp"
#include "runtime/invariants/ensure.hpp"

#include <caf/timespan.hpp>
#include <caf/typed_response_promise.hpp>

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace ringmaster {

/// Clients that a communicator answers later: when nothing is in flight, when members have left, or when it is gone.
class client_waiters {
public:
  using status_promise = caf::typed_response_promise<gpu_sim::GetCommStatusResponse>;
  using leave_promise = caf::typed_response_promise<proto::LeaveResponse>;
  using destroy_promise = caf::typed_response_promise<proto::CommDestroyResponse>;

  struct idle_waiter {
    uint64_t limit_number = 0; ///< See `call_limits`.
    status_promise promise;
    caf::timespan limit{0};
  };

  void add_idle_waiter(idle_waiter x) {
    const auto number = x.limit_number;
    const bool is_new = idle_.emplace(number, std::move(x)).second;
    ensure(is_new, "a limit is of one waiter");
  }
  bool any_waits_for_idle() const { return !idle_.empty(); }
  /// Its limit has passed. None: no client waits with this limit.
  std::optional<idle_waiter> take_expired(uint64_t limit_number) {
    auto found = idle_.extract(limit_number);
    return found ? std::optional{std::move(found.mapped())} : std::nullopt;
  }
  /// Nothing is in flight.
  std::vector<idle_waiter> take_idle_waiters() {
    std::vector<idle_waiter> result;
    for (auto& [number, x] : std::exchange(idle_, {}))
      result.push_back(std::move(x));
    return result;
  }

  void add_destroy(destroy_promise promise) { destroys_.push_back(std::move(promise)); }
  void answer_destroys() {
    proto::CommDestroyResponse answer;
    answer.set_success(true);
    for (auto& promise : std::exchange(destroys_, {}))
      promise.deliver(answer);
  }

  void add_leave(std::set<device_id> devices, leave_promise promise) {
    ensure(!devices.empty(), "a client waits for members to leave");
    leaves_.push_back({std::move(devices), std::move(promise)});
  }
  /// These have left, or stay for a reason. Answers clients whose devices have all left, or of which one stays.
  void answer_leaves(const std::vector<device_id>& devices, bool stay, const proto::LeaveResponse& answer) {
    std::erase_if(leaves_, [&](auto& x) {
      bool concerned = false;
      for (auto device : devices)
        concerned = x.devices.erase(device) != 0 || concerned;
      const bool is_answered = concerned && (stay || x.devices.empty());
      if (is_answered)
        x.promise.deliver(answer);
      return is_answered;
    });
  }

private:
  struct leave_waiter {
    std::set<device_id> devices; ///< Which have not left yet.
    leave_promise promise;
  };

  std::map<uint64_t, idle_waiter> idle_; ///< By the number of their limit.
  std::vector<destroy_promise> destroys_;
  std::vector<leave_waiter> leaves_;
};

} // namespace ringmaster
