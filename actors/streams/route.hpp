#pragma once

#include "messages/gpu_sim.pb.h"
#include "messages/transfer.hpp"
#include "runtime/reduction/reducer.hpp"

#include <caf/expected.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace ringmaster {

class stream_state;

/// Where a block goes when it arrives: into `out`, or reduced with `operand` into `out`. The caller has checked
/// that both hold the whole block.
struct block_sink {
  std::byte* out = nullptr;
  const std::byte* operand = nullptr; ///< nullptr: copy
  const reducer* combine = nullptr;   ///< With an operand.
  double factor = 1;                  ///< Other than 1, a copy is multiplied by it; elements of `datatype`.
  proto::DataType datatype = proto::FLOAT64;

  /// Takes the bytes that start `offset` bytes into the block; whole elements.
  void put(uint64_t offset, std::span<const std::byte> bytes) const;
};

/// How a receiver reads a block that lies on another device. A schedule does not know which route its blocks take.
class route {
public:
  enum class progress {
    more,    ///< Call `advance` again.
    waiting, ///< Bytes are under way; `on_chunk` goes on.
    done,    ///< The whole block is in the sink.
    broken   ///< It will not come: see `error`.
  };

  virtual ~route() = default;

  /// Reads some bytes, at most a slice.
  virtual progress advance(stream_state& stream) = 0;
  /// Bytes that the route asked for have arrived.
  virtual progress on_chunk(stream_state&, const chunk&) { return progress::waiting; }

  std::string error;
  std::string_view name; ///< In the table of routes; empty: within one device.
};

/// Lanes of equal size that lie one behind the other on this device, combined from left to right.
struct folded_lanes {
  std::span<const std::byte> lanes;
  std::span<std::byte> out; ///< As large as one lane.
  const reducer* combine = nullptr;
  bool finish = false;
  uint32_t world_size = 1; ///< To finish with.
};
std::unique_ptr<route> make_fold(const folded_lanes& what);

/// A kind of route, and where it goes. A new one is a file of its own and a row in the table of route.cpp.
struct known_route {
  std::string_view name;
  bool (*reaches)(const offer& source); ///< Whether it can read what is offered.
  std::unique_ptr<route> (*make)(const offer& source, const block_sink& sink);
};

/// From the shortest to the one that goes everywhere.
std::span<const known_route> routes();

/// The first of the routes that reaches `source`, or the one that is wanted by name. Errors: unreachable, where that
/// one does not.
caf::expected<std::unique_ptr<route>> make_route(const offer& source, const block_sink& sink,
                                                 std::string_view wanted = "auto");

/// To a block of one's own device.
std::unique_ptr<route> make_own_route(const device_window& source, const block_sink& sink);

} // namespace ringmaster
