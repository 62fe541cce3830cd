#pragma once

#include "messages/gpu_sim.pb.h"
#include "messages/transfer.hpp"
#include "runtime/reduction/block_sink.hpp"

#include <caf/expected.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ringmaster {

class stream_state;
struct stream_options;

/// How a receiver reads a block of another device. A schedule does not depend on the routes of its blocks.
class route {
public:
  enum class progress {
    more,    ///< Call `advance` again.
    waiting, ///< Bytes are in flight; `on_chunk` goes on.
    done,    ///< The whole block is in the sink.
    broken   ///< It will not come: see `error`.
  };

  virtual ~route() = default;

  /// Reads some bytes, at most a slice.
  virtual progress advance(stream_state& stream) = 0;
  /// Bytes that the route asked for have arrived.
  virtual progress on_chunk(stream_state&, const chunk&) { return progress::waiting; }
  /// Grows while bytes arrive without a message to the stream.
  virtual uint64_t arrived() const { return 0; }

  caf::error error;
  std::string_view name; ///< In `route_table`; empty: within one device.
};

/// Lanes of equal size, one after the other in this device's memory, that are combined from left to right.
struct folded_lanes {
  std::span<const std::byte> lanes;
  std::span<std::byte> out; ///< As large as one lane.
  const reducer* combine = nullptr;
  bool finish = false;
  uint32_t world_size = 1; ///< To finish with.
};
std::unique_ptr<route> make_fold(const folded_lanes& what);

/// A kind of route. A new one gets its own file, a row in route.cpp and one in the table of
/// runtime/configuration/routes.hpp.
struct known_route {
  bool (*reaches)(const offer& source, const stream_options& ours); ///< Whether it can read what is offered.
  std::unique_ptr<route> (*make)(const offer& source, const block_sink& sink, const stream_options& ours);
};

/// The first route that reaches `source`, or the one that the options name; a block that has travelled within its offer
/// needs none. Errors: unreachable, if the named route does not reach it.
caf::expected<std::unique_ptr<route>> make_route(const offer& source, const block_sink& sink,
                                                 const stream_options& ours);

/// To a block of the same device.
std::unique_ptr<route> make_own_route(const device_window& source, const block_sink& sink);

/// In messages, for these ranges [first, second) of the block.
std::unique_ptr<route> make_message_route(const offer& source, const block_sink& sink,
                                          std::vector<std::pair<uint64_t, uint64_t>> ranges);

/// Over bulk connections: actors/links.
std::unique_ptr<route> make_link_route(const offer& source, const block_sink& sink, const stream_options& ours);

} // namespace ringmaster
