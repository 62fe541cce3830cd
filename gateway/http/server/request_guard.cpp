#include "gateway/http/server/request_guard.hpp"

#include "runtime/text/endpoint.hpp"
#include "runtime/text/utf8.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <arpa/inet.h>

namespace ringmaster::gateway {

namespace {

constexpr size_t target_max = 4096;

bool is_numeric_address(const std::string& host) {
  in_addr four{};
  in6_addr six{};
  return ::inet_pton(AF_INET, host.c_str(), &four) == 1 || ::inet_pton(AF_INET6, host.c_str(), &six) == 1;
}

/// "name" of "name:8080" and "::1" of "[::1]:8080".
std::string name_in(const std::string& host) {
  if (host.starts_with('['))
    return host.substr(1, std::min(host.find(']'), host.size()) - 1);
  return host.substr(0, host.find(':'));
}

bool is_json(const std::string& content_type) {
  auto type = lower_case(content_type.substr(0, content_type.find(';')));
  while (type.ends_with(' '))
    type.pop_back();
  return type == "application/json";
}

bool is_data(const std::string& path) {
  return path == "/metrics" || path.starts_with("/api/");
}

} // namespace

std::optional<refusal> request_guard::check(const request_facts& x) const {
  if (auto no = check_form(x))
    return no;
  if (auto no = check_host(x))
    return no;
  return x.method == "POST" ? check_writing(x) : check_reading(x);
}

std::optional<refusal> request_guard::check_form(const request_facts& x) const {
  if (x.method != "GET" && x.method != "HEAD" && x.method != "POST")
    return refusal{405, "bad_request", "the methods of this server are GET, HEAD and POST"};
  if (x.target.size() > target_max)
    return refusal{414, "bad_request", fmt::format("the address is longer than {} characters", target_max)};
  if (x.has_transfer_encoding)
    return refusal{411, "bad_request", "a body needs a Content-Length: Transfer-Encoding is not accepted"};
  return std::nullopt;
}

std::optional<refusal> request_guard::check_host(const request_facts& x) const {
  const auto name = lower_case(name_in(x.host));
  if (x.host_count == 1 && (name == "localhost" || is_numeric_address(name) || rules_.host_names.count(name) == 1))
    return std::nullopt;
  return refusal{403, "forbidden",
                 "the Host header names a site that this is not: use the numeric address or localhost, or start the "
                 "gateway with --http-name NAME"};
}

bool request_guard::is_operator(const request_facts& x) const {
  return rules_.operators && rules_.operators->is_presented_in(x.authorization);
}

bool request_guard::is_reader(const request_facts& x) const {
  return (rules_.reader && rules_.reader->is_presented_in(x.authorization)) || is_operator(x);
}

std::optional<refusal> request_guard::check_reading(const request_facts& x) const {
  const bool is_own = rules_.own_user_reading && x.is_of_own_user;
  if (rules_.open_reading || is_own || !is_data(x.path) || is_reader(x))
    return std::nullopt;
  if (rules_.own_user_reading)
    return refusal{401, "unauthorized",
                   "processes of the gateway's user on its host may read: --reader-token FILE and --open-reading admit "
                   "others"};
  return refusal{401, "unauthorized",
                 "reading needs the reader's or the operator's token, as Authorization: Bearer TOKEN"};
}

std::optional<refusal> request_guard::check_writing(const request_facts& x) const {
  if (!rules_.operators)
    return refusal{403, "forbidden", "this gateway changes nothing: start it with --operator-token FILE to allow it"};
  const auto own_origin = fmt::format("{}://{}", rules_.tls ? "https" : "http", x.host);
  const bool is_foreign = (!x.origin.empty() && lower_case(x.origin) != lower_case(own_origin))
                          || (!x.fetch_site.empty() && x.fetch_site != "same-origin" && x.fetch_site != "none");
  if (is_foreign)
    return refusal{403, "forbidden", "a page of another site sent this request"};
  if (!is_operator(x))
    return refusal{401, "unauthorized", "this needs the operator's token, as Authorization: Bearer TOKEN"};
  if (!is_json(x.content_type))
    return refusal{415, "bad_request", "the body must be JSON, with Content-Type: application/json"};
  return std::nullopt;
}

} // namespace ringmaster::gateway
