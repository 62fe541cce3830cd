#pragma once

#include "gateway/dialects/device_table.hpp"
#include "messages/gpu_sim.pb.h"
#include "messages/ids.hpp"

#include <caf/actor_clock.hpp>
#include <caf/error.hpp>
#include <caf/expected.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace ringmaster::gateway {

/// A communicator as its client sees it. Clients name ranks and addresses as CommInit has told them, also after a
/// loss; this knows which device has which of these ranks now. Pure.
class course_communicator {
public:
  using time_point = caf::actor_clock::time_point;

  explicit course_communicator(const gpu_sim::CommInitResponse& made);

  /// The cluster's communicator that it stands for.
  communicator_id now() const noexcept { return now_; }
  /// Devices in rank order, as of this epoch. Returns the devices that spares have replaced, each with its spare.
  std::vector<std::pair<device_id, gpu_sim::DeviceMetadata>> update(
    uint64_t epoch, const google::protobuf::RepeatedPtrField<gpu_sim::DeviceMetadata>& devices);
  /// The cluster has made another communicator of the remaining devices.
  void moved_to(const gpu_sim::CommInitResponse& made);
  uint64_t epoch() const noexcept { return epoch_; }

  /// Number of ranks that CommInit has made.
  size_t first_size() const noexcept { return ranks_.size(); }
  /// The present rank of one of these. Errors: invalid_argument beyond them; device_lost.
  caf::expected<uint32_t> present_rank(uint32_t rank) const;
  /// The present rank of a device, also of one that a spare has replaced.
  std::optional<uint32_t> rank_of(device_id device) const;
  bool has(device_id device) const { return rank_of(device).has_value(); }
  std::vector<device_id> devices() const;

  /// A rank of CommInit that has a device.
  struct member {
    uint32_t first_rank = 0;
    cluster_memory first; ///< Of CommInit: the client's addresses are in it.
    cluster_memory present;
  };
  /// In the order of the present ranks.
  std::vector<member> members() const;

  bool in_group = false;
  bool has_run = false;   ///< An operation was called.
  caf::error failed;      ///< Of the latest operation.
  time_point last_used{}; ///< In the future while a call waits for it: until then at most.

private:
  struct rank {
    cluster_memory first;
    std::optional<cluster_memory> present; ///< None: it is lost.
  };

  communicator_id now_;
  uint64_t epoch_ = 0;
  std::vector<rank> ranks_;
};

/// The communicators that clients of one listener have made. Pure.
class communicator_table {
public:
  /// Returns its id for clients.
  uint64_t add(const gpu_sim::CommInitResponse& made, course_communicator::time_point now);
  /// Errors: unknown_communicator, with what has become of it.
  caf::expected<course_communicator*> find(uint64_t id);
  /// Null: it was removed.
  course_communicator* find_or_null(uint64_t id);
  enum class end : uint8_t { destroyed, finalized, expired };
  void remove(uint64_t id, end how);
  /// Whether CommFinalize has ended it.
  bool is_finalized(uint64_t id) const;
  /// Those that were last used before this.
  std::vector<uint64_t> idle_since(course_communicator::time_point before) const;
  /// The one of this device that was used last; null: none has it.
  course_communicator* latest_of(device_id device);
  size_t size() const noexcept { return alive_.size(); }

private:
  static constexpr size_t ended_max = 1000;

  std::map<uint64_t, course_communicator> alive_;
  std::map<uint64_t, end> ended_; ///< The latest of them.
};

} // namespace ringmaster::gateway
