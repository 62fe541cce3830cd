#pragma once

#include "gateway/access/access_token.hpp"
#include "gateway/access/peer_user.hpp"
#include "runtime/health/restart_intensity.hpp"
#include "runtime/text/endpoint.hpp"

#include <caf/error.hpp>

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace ringmaster::gateway {

/// Who may call over gRPC. With none of these: processes of this process's user, and of root, on this host.
struct caller_rules {
  std::optional<access_token> token; ///< Who presents it.
  bool has_certificates = false;     ///< TLS requires a certificate of each client, and admits no others.
  bool is_open = false;              ///< Every process that can connect.
};

/// Whether a server with these rules may listen there. Errors: invalid_argument, if other hosts can connect and nothing
/// says which of them may call, or if a token would cross the network in clear.
caf::error check_reach(const caller_rules& rules, bool has_tls, const std::string& host);

/// Judges the calls that arrive at one address. Thread-safe.
class caller_guard {
public:
  /// `own`: the address at which they arrive, with its port.
  caller_guard(const caller_rules& rules, endpoint own, user_finder find = user_of)
    : rules_(rules), own_(std::move(own)), find_(std::move(find)) {}

  /// `peer`: where the call is from, in gRPC's form: "ipv4:127.0.0.1:50712". `authorization`: the metadata of that name;
  /// empty: there is none. Errors: unauthenticated, permission_denied; logged at most once a second.
  caf::error check(const std::string& peer, std::string_view authorization);

private:
  caf::error judge(const std::string& peer, std::string_view authorization) const;
  caf::error judge_user(const std::string& peer) const;

  const caller_rules& rules_;
  const endpoint own_;
  const user_finder find_;
  std::mutex mutex_; ///< Of what follows.
  rate_limiter refusals_{std::chrono::seconds{1}};
};

} // namespace ringmaster::gateway
