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
  /// Grows while bytes arrive without a word to the stream.
  virtual uint64_t arrived() const { return 0; }

  caf::error error;
  std::string_view name; ///< In `route_table`; empty: within one device.
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

/// A kind of route, and where it goes. A new one is a file of its own, a row in route.cpp and one in the table of
/// runtime/configuration/routes.hpp.
struct known_route {
  bool (*reaches)(const offer& source, const stream_options& ours); ///< Whether it can read what is offered.
  std::unique_ptr<route> (*make)(const offer& source, const block_sink& sink, const stream_options& ours);
};

/// The first of the routes that reaches `source`, or the one that the options want by name; for a block that travelled
/// with its offer, none is asked. Errors: unreachable, where that one does not.
caf::expected<std::unique_ptr<route>> make_route(const offer& source, const block_sink& sink,
                                                 const stream_options& ours);

/// To a block of one's own device.
std::unique_ptr<route> make_own_route(const device_window& source, const block_sink& sink);

/// In messages, of these ranges [first, second) of the block alone.
std::unique_ptr<route> make_message_route(const offer& source, const block_sink& sink,
                                          std::vector<std::pair<uint64_t, uint64_t>> ranges);

/// Over bulk connections: actors/links.
std::unique_ptr<route> make_link_route(const offer& source, const block_sink& sink, const stream_options& ours);

} // namespace ringmaster
