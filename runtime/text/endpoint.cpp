#include "runtime/text/endpoint.hpp"

#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "runtime/text/comma_list.hpp"

#include <fmt/format.h>

#include <arpa/inet.h>
#include <charconv>
#include <optional>

namespace ringmaster {

namespace {

/// A positive number and nothing else.
template <class T>
std::optional<T> parse_positive(std::string_view text) {
  T value = 0;
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size() || value == 0)
    return std::nullopt;
  return value;
}

} // namespace

bool is_ipv6_address(std::string_view host) {
  in6_addr ignored;
  const std::string text{host.substr(0, host.find('%'))};
  return ::inet_pton(AF_INET6, text.c_str(), &ignored) == 1;
}

std::string without_brackets(std::string_view host) {
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  return std::string{bracketed ? host.substr(1, host.size() - 2) : host};
}

std::string bracket_advice(std::string_view text) {
  constexpr auto advice = "an IPv6 address is written in brackets: \"[{}]:{}\"";
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos)
    return {};
  if (const auto host = text.substr(0, colon), port = text.substr(colon + 1);
      is_ipv6_address(host) && parse_positive<uint16_t>(port))
    return fmt::format(advice, host, port);
  const auto host = without_brackets(text);
  return is_ipv6_address(host) ? fmt::format(advice, host, "PORT") : std::string{};
}

caf::expected<endpoint> parse_endpoint(std::string_view text) {
  auto colon = text.rfind(':');
  if (colon != std::string_view::npos) {
    const auto host = without_brackets(text.substr(0, colon));
    const bool bracketed = host.size() < colon;
    const auto port = parse_positive<uint16_t>(text.substr(colon + 1));
    if (port && !host.empty() && host.find_first_of(bracketed ? "[]" : ":[]") == std::string::npos)
      return endpoint{host, *port};
  }
  const auto advice = bracket_advice(text);
  return invalid(fmt::format("\"{}\" is no endpoint: {}", text,
                             advice.empty() ? "that is \"host:port\" with a port from 1 to 65535" : advice));
}

caf::expected<std::vector<endpoint>> parse_endpoints(std::string_view text) {
  std::vector<endpoint> result;
  for (auto part : comma_list(text)) {
    TRY(each, parse_endpoint(part));
    result.push_back(std::move(*each));
  }
  return result;
}

std::string text_of(const endpoint& x) {
  return x.host.find(':') == std::string::npos ? fmt::format("{}:{}", x.host, x.port)
                                               : fmt::format("[{}]:{}", x.host, x.port);
}

caf::expected<cluster_device> parse_cluster_device(std::string_view text) {
  auto first = text.find(',');
  auto last = text.rfind(',');
  if (first != last) {
    auto id = parse_positive<uint64_t>(text.substr(0, first));
    auto host = text.substr(first + 1, last - first - 1);
    auto port = parse_positive<uint16_t>(text.substr(last + 1));
    if (id && port && !host.empty() && host.find(',') == std::string_view::npos)
      return cluster_device{device_id{*id}, {without_brackets(host), *port}};
  }
  return invalid(fmt::format(
    "\"{}\" is no device of a cluster: that is \"id,host,port\" with an id from 1 and a port from 1 to 65535", text));
}

} // namespace ringmaster
