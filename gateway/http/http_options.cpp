#include "gateway/http/http_options.hpp"

#include "messages/errc.hpp"
#include "runtime/text/own_address.hpp"
#include "runtime/text/utf8.hpp"

namespace ringmaster::gateway {

namespace {

caf::error read_token(const std::string& file, std::optional<access_token>& to) {
  if (file.empty())
    return caf::none;
  auto token = access_token::read(file);
  if (!token)
    return std::move(token.error());
  to = std::move(*token);
  return caf::none;
}

} // namespace

caf::expected<server_options> http_options::server() const {
  server_options result;
  result.host = listening_address(where.host);
  result.port = where.port;
  if (certificate.empty() != key.empty())
    return invalid("TLS needs both --http-certificate and --http-key");
  if (!clients.empty() && certificate.empty())
    return invalid("--http-clients needs --http-certificate and --http-key: clients show certificates to TLS alone");
  if (!certificate.empty()) {
    auto tls = open_tls(certificate, key, clients);
    if (!tls)
      return std::move(tls.error());
    result.tls = std::move(*tls);
  }
  auto& rules = result.rules;
  if (auto problem = read_token(operator_token, rules.operators))
    return problem;
  if (auto problem = read_token(reader_token, rules.reader))
    return problem;
  const bool is_local = is_loopback(result.host);
  rules.tls = result.tls != nullptr;
  rules.open_reading = open_reading;
  rules.own_user_reading = is_local && !rules.reader && !open_reading;
  if (!rules.own_user_reading && !rules.open_reading && !rules.reader && !rules.operators)
    return invalid(fmt::format("other hosts reach {}: give --reader-token FILE, or --open-reading if any of them may "
                               "read the cluster's state; or listen at 127.0.0.1",
                               where.host));
  if (!is_local && !rules.tls && (rules.reader || rules.operators))
    return invalid(fmt::format("a token sent to {} would cross the network in clear: give --http-certificate and "
                               "--http-key, or listen at 127.0.0.1 behind a proxy with TLS on this host",
                               where.host));
  for (auto& name : names)
    rules.host_names.insert(lower_case(name));
  result.limits = limits;
  result.connections_max = event_streams_max + requests_max;
  return result;
}

} // namespace ringmaster::gateway
