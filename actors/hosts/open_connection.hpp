#pragma once

#include "actors/links/sockets.hpp"
#include "runtime/text/endpoint.hpp"

#include <caf/error.hpp>
#include <caf/expected.hpp>
#include <caf/timespan.hpp>

namespace ringmaster {

/// While one lives, nothing in this process connects: what is under way ends within `look`, and what begins later does
/// at once. For a process that exits, which a silent peer must not delay.
class no_more_connecting {
public:
  static constexpr auto look = std::chrono::milliseconds{20};

  no_more_connecting();
  ~no_more_connecting();
  no_more_connecting(const no_more_connecting&) = delete;
  no_more_connecting& operator=(const no_more_connecting&) = delete;

  static bool is_so();
  /// aborted
  static caf::error error();
};

/// Looks the name up and connects, within `limit` in all; blocks. Errors: invalid_argument, for a name that is not
/// knows; timed_out, where no name server answers; unreachable, with both ends and advice for `whom`; aborted.
caf::expected<open_socket> open_connection(const endpoint& there, caf::timespan limit,
                                           listener_kind whom = listener_kind::coordinator);

} // namespace ringmaster
