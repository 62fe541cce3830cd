#include "gateway/access/caller_guard.hpp"

#include "messages/errc.hpp"
#include "runtime/text/own_address.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <chrono>

namespace ringmaster::gateway {

namespace {

constexpr auto other_ways = "--grpc-token FILE, --grpc-clients FILE and --open-grpc admit others";

/// "[::1]:50712" of "ipv6:%5B::1%5D:50712".
std::string address_in(const std::string& peer) {
  auto result = peer.substr(std::min(peer.find(':') + 1, peer.size()));
  for (const auto& [escaped, plain] : {std::pair{"%5B", "["}, std::pair{"%5D", "]"}})
    if (const auto at = result.find(escaped); at != std::string::npos)
      result.replace(at, 3, plain);
  return result;
}

} // namespace

caf::error check_reach(const caller_rules& rules, bool has_tls, const std::string& host) {
  if (rules.is_open || rules.has_certificates || is_loopback(host))
    return caf::none;
  if (!rules.token)
    return invalid(fmt::format("other hosts reach {}: give --grpc-clients FILE with certificates, or --grpc-token FILE "
                               "with TLS, or --open-grpc if every process that can connect may use the cluster; or "
                               "listen at 127.0.0.1",
                               host));
  if (!has_tls)
    return invalid(fmt::format("a token sent to {} would cross the network in clear: give --grpc-certificate and "
                               "--grpc-key, or listen at 127.0.0.1",
                               host));
  return caf::none;
}

caf::error caller_guard::check(const std::string& peer, std::string_view authorization) {
  auto problem = judge(peer, authorization);
  if (!problem)
    return problem;
  uint64_t times = 0;
  {
    std::scoped_lock lock{mutex_};
    times = refusals_.happened(std::chrono::steady_clock::now());
  }
  if (times > 0)
    spdlog::warn("gRPC call from {} at {} refused ({} since the last such line): {}", address_in(peer), text_of(own_),
                 times, render(problem));
  return problem;
}

caf::error caller_guard::judge(const std::string& peer, std::string_view authorization) const {
  if (rules_.is_open)
    return caf::none;
  if (rules_.token && !rules_.token->is_presented_in(authorization))
    return make_error(errc::unauthenticated, "a call needs the gateway's token: metadata \"authorization: Bearer "
                                             "TOKEN\"");
  return rules_.token || rules_.has_certificates ? caf::none : judge_user(peer);
}

caf::error caller_guard::judge_user(const std::string& peer) const {
  const auto from = parse_endpoint(address_in(peer));
  if (!from || !is_loopback(from->host))
    return make_error(errc::permission_denied,
                      fmt::format("{} is not on the gateway's host: {}", address_in(peer), other_ways));
  const bool is_six = is_ipv6_address(from->host);
  const bool is_same_kind = is_loopback(own_.host) && own_.host != "localhost" && is_six == is_ipv6_address(own_.host);
  const auto to = is_same_kind ? own_.host : is_six ? "::1" : "127.0.0.1";
  if (const auto problem = check_own_user({from->host, from->port, to, own_.port}, find_))
    return make_error(errc::permission_denied, fmt::format("{}: {}", render(problem), other_ways));
  return caf::none;
}

} // namespace ringmaster::gateway
