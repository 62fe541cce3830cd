#pragma once

#include "messages/byte_block.hpp"
#include "messages/cluster.pb.h"
#include "messages/collective.pb.h"
#include "messages/errc.hpp"
#include "messages/ids.hpp"
#include "messages/memory_place.hpp"
#include "messages/protobuf_inspect.hpp"

#include <caf/actor_control_block.hpp>
#include <caf/meta/load_callback.hpp>
#include <caf/meta/type_name.hpp>
#include <caf/optional.hpp>

#include <compare>
#include <memory>
#include <string>
#include <vector>

namespace ringmaster {

class mapped_memory; // runtime/memory/mapped_memory.hpp

/// Names one block on its way from one stream to another.
struct transfer_key {
  uint64_t channel = 0;          ///< The communicator's id; for BeginSend the transfer's stream id.
  epoch_number epoch = {};       ///< The communicator's; 0 for BeginSend.
  sequence_number sequence = {}; ///< The operation's; 0 for BeginSend.
  uint32_t source = 0;           ///< The sending rank.
  uint32_t destination = 0;      ///< The receiving rank.
  uint32_t index = 0;            ///< Counts the blocks from this source to this destination within the operation.

  friend auto operator<=>(const transfer_key&, const transfer_key&) = default;
};

/// Where bytes lie on a device. `memory` is set only while the message stays in the process of the device; `place`, for
/// all others, may be null: then its memory is not accessible.
struct device_window {
  device_id device;
  uint64_t address = 0;
  uint64_t bytes = 0;
  std::shared_ptr<mapped_memory> memory;
  std::shared_ptr<const memory_place> place = {};
};

/// How the receiver combines a block with what lies at its destination. The numbers may come from another process: see
/// `reducer::of_transfer`.
struct block_reduction {
  int32_t op = 0;       ///< gpu_sim::ReduceOp
  int32_t datatype = 0; ///< proto::DataType

  static block_reduction of(const gpu_sim::TransferReduction& x) { return {x.op(), x.datatype()}; }
  friend bool operator==(const block_reduction&, const block_reduction&) = default;
};

/// SENDER -> RECEIVER: here is the block; read it, then tell me. The range stays as it is until `taken`. A small block
/// travels along, to those that cannot read the sender's memory: `source` says of it the device and the size alone.
struct offer {
  transfer_key key;
  device_window source;
  caf::strong_actor_ptr sender;
  byte_block block = {};                         ///< All of its bytes, or none.
  bool awaited = true;                           ///< Whether the sender waits for `taken`.
  caf::optional<block_reduction> reduction = {}; ///< Of a transfer; none: the block overwrites its destination.
};

/// RECEIVER -> SENDER: I have read it all.
struct taken {
  transfer_key key;
};

/// RECEIVER -> SENDER: I shall not read it. SENDER -> RECEIVER: the offer is withdrawn; `sender`, if set, waits to hear
/// that it is (`refused`) or that it is too late (`taken`), so that both ends tell the same outcome.
struct refused {
  transfer_key key;
  std::string reason;
  caf::strong_actor_ptr sender;
  uint32_t code = 0; ///< Of the reason, as error_from_wire takes it.

  static refused by(const transfer_key& key, const caf::error& why, caf::strong_actor_ptr sender = nullptr) {
    return {key, render(why), std::move(sender), wire_code(why)};
  }
  caf::error why() const { return error_from_wire(code, reason); }
};

/// RECEIVER -> SENDER, where it cannot read the sender's memory: send me these bytes of the block. Of no bytes: I am
/// still reading.
struct pull {
  transfer_key key;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

/// SENDER -> RECEIVER: the bytes asked for.
struct chunk {
  transfer_key key;
  uint64_t offset = 0;
  byte_block block;
};

/// STREAM -> COMMUNICATOR: I have come to this joint operation; nothing but such operations is before it. `memory` is
/// set only while the message stays in the process of the device.
struct shared_memory_arrival {
  communicator_id communicator;
  epoch_number epoch;
  sequence_number sequence;
  device_id device;
  std::shared_ptr<mapped_memory> memory;
};

/// RELAY -> COMMUNICATOR: all of its ranks that are here have come to this joint operation. `memories` as above.
struct shared_memory_arrivals {
  communicator_id communicator;
  epoch_number epoch;
  sequence_number sequence;
  std::vector<device_id> devices;
  std::vector<std::shared_ptr<mapped_memory>> memories;
};

/// How others reach a device, the stream that runs its collectives, and the relay of its process.
struct device_handle {
  caf::strong_actor_ptr device;
  caf::strong_actor_ptr stream;
  caf::strong_actor_ptr relay{}; ///< Null: a device without one.
  std::shared_ptr<const memory_place> memory{};
};

/// The handles of a communicator's members, in rank order.
using device_handles = std::vector<device_handle>;

/// COMMUNICATOR -> STREAM of every rank: these operations, in this order, over the members whose handles these are, in
/// rank order. All ranks of a process share it: it must not change.
struct operation_orders {
  std::shared_ptr<const proto::OperationBatch> batch;
  std::shared_ptr<const device_handles> members;
};

/// COMMUNICATOR, COORDINATOR -> DEVICE of every rank: who has which rank now, and how to reach them. All ranks of a
/// process share it: it must not change.
struct membership {
  std::shared_ptr<const proto::Members> members;
  std::shared_ptr<const device_handles> handles; ///< In rank order.

  static membership of(proto::Members members, device_handles handles) {
    return {std::make_shared<const proto::Members>(std::move(members)),
            std::make_shared<const device_handles>(std::move(handles))};
  }
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, transfer_key& x) {
  return f(caf::meta::type_name("transfer_key"), x.channel, x.epoch, x.sequence, x.source, x.destination, x.index);
}

/// What is shared within a process goes as a value to another one; null as an empty one.
template <class Inspector, class T, class... Ts>
typename Inspector::result_type inspect_with(Inspector& f, std::shared_ptr<const T>& shared, Ts&&... xs) {
  auto value = shared ? *shared : T{};
  if constexpr (Inspector::reads_state) {
    return f(std::forward<Ts>(xs)..., value);
  } else {
    auto take = [&]() -> caf::error {
      shared = value == T{} ? nullptr : std::make_shared<const T>(std::move(value));
      return caf::none;
    };
    return f(std::forward<Ts>(xs)..., value, caf::meta::load_callback(take));
  }
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, device_window& x) {
  return inspect_with(f, x.place, caf::meta::type_name("device_window"), x.device, x.address, x.bytes);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, block_reduction& x) {
  return f(caf::meta::type_name("block_reduction"), x.op, x.datatype);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, offer& x) {
  return f(caf::meta::type_name("offer"), x.key, x.source, x.sender, x.block, x.awaited, x.reduction);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, taken& x) {
  return f(caf::meta::type_name("taken"), x.key);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, refused& x) {
  return f(caf::meta::type_name("refused"), x.key, x.reason, x.sender, x.code);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, pull& x) {
  return f(caf::meta::type_name("pull"), x.key, x.offset, x.bytes);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, chunk& x) {
  return f(caf::meta::type_name("chunk"), x.key, x.offset, x.block);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, shared_memory_arrival& x) {
  return f(caf::meta::type_name("shared_memory_arrival"), x.communicator, x.epoch, x.sequence, x.device);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, shared_memory_arrivals& x) {
  return f(caf::meta::type_name("shared_memory_arrivals"), x.communicator, x.epoch, x.sequence, x.devices);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, device_handle& x) {
  return inspect_with(f, x.memory, caf::meta::type_name("device_handle"), x.device, x.stream, x.relay);
}

/// What is shared within a process goes as values to another one.
template <class Inspector, class First, class Second>
typename Inspector::result_type inspect_shared(Inspector& f, const char* name, std::shared_ptr<const First>& a,
                                               std::shared_ptr<const Second>& b) {
  auto first = a ? *a : First{};
  auto second = b ? *b : Second{};
  if constexpr (Inspector::reads_state) {
    return f(caf::meta::type_name(name), first, second);
  } else {
    auto take = [&]() -> caf::error {
      a = std::make_shared<const First>(std::move(first));
      b = std::make_shared<const Second>(std::move(second));
      return caf::none;
    };
    return f(caf::meta::type_name(name), first, second, caf::meta::load_callback(take));
  }
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, operation_orders& x) {
  return inspect_shared(f, "operation_orders", x.batch, x.members);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, membership& x) {
  return inspect_shared(f, "membership", x.members, x.handles);
}

} // namespace ringmaster
