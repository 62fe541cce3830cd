#pragma once

#include "messages/collective.pb.h"
#include "messages/gpu_sim.pb.h"

#include <caf/expected.hpp>
#include <caf/timespan.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ringmaster::gateway {

/// One form of the course protocol: what the numbers of its messages mean. The default is the lab's own form. Pure.
struct dialect {
  enum class count_unit : uint8_t { elements, bytes };
  enum class loss_policy : uint8_t { as_configured, shrink, replace, abort };
  enum class peer_name : uint8_t { rank, device };
  enum class chunk_name : uint8_t { field, header };
  enum class send_op_use : uint8_t { ignored, applied };
  enum class shortage : uint8_t { share, refuse };

  /// Where clients see the memory of every device.
  struct window {
    uint64_t base = 0;
    uint64_t bytes = 0; ///< More than 0.
  };

  /// Names of the enums' numbers: the place of a name is its number.
  std::vector<std::string> statuses{"IN_PROGRESS", "SUCCESS", "FAILED"};
  std::vector<std::string> reduce_ops{"SUM", "PROD", "MIN", "MAX"};
  std::string first_status = "SUCCESS"; ///< Of a communicator before its first operation.
  count_unit count = count_unit::elements;
  proto::DataType datatype = proto::FLOAT64;
  std::optional<window> addresses;         ///< None: those of the cluster's devices.
  std::optional<uint64_t> first_device_id; ///< Devices are numbered from here; none: ids of the cluster.
  loss_policy on_loss = loss_policy::as_configured;
  peer_name peer = peer_name::rank; ///< What BeginSend and BeginReceive name.
  send_op_use send_op = send_op_use::ignored; ///< Of BeginSend's field 4, a reduction by the receiver.
  chunk_name chunk = chunk_name::field;
  shortage on_shortage = shortage::share; ///< What CommInit does if too few devices are free.

  /// Sizes of the limits for clients of the listener.
  caf::timespan idle_limit = std::chrono::minutes{10}; ///< Of a communicator; then it is destroyed.
  caf::timespan call_limit = std::chrono::minutes{1};  ///< Of a call without a deadline.
  uint64_t message_bytes_max = 1ull << 30;             ///< Of the data in one message.
  uint32_t calls_max = 4096;                           ///< Under way.

  /// The number of a status; READY is SUCCESS in a dialect without it.
  int number_of(gpu_sim::Status status) const;
  int first_status_number() const;
  /// Errors: invalid_argument, with the numbers that the dialect has.
  caf::expected<gpu_sim::ReduceOp> reduce_op(int number) const;
  /// What the receiver does with the bytes of a BeginSend with this number; none: they overwrite what is there, as they
  /// do with NIL, or where the number is ignored. Errors: those of `reduce_op`.
  caf::expected<std::optional<gpu_sim::TransferReduction>> send_reduction(int number) const;
  /// The elements of an AllReduce with this count. Errors: invalid_argument for bytes that are no whole elements.
  caf::expected<uint64_t> elements(uint64_t count) const;
  /// The same in bytes.
  uint64_t bytes_of(uint64_t elements) const;
  /// Errors: invalid_argument for enums without a name that is needed, or with an unknown or repeated one.
  caf::error check() const;
};

} // namespace ringmaster::gateway
