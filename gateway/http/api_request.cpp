#include "gateway/http/api_request.hpp"

#include "messages/errc.hpp"
#include "runtime/text/utf8.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <vector>

namespace ringmaster::gateway {

namespace {

std::optional<uint64_t> whole_number(std::string_view text, int base = 10) {
  uint64_t result = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), result, base);
  if (text.empty() || failure != std::errc{} || end != text.data() + text.size())
    return std::nullopt;
  return result;
}

bool is_among(std::string_view name, std::initializer_list<const char*> known) {
  return std::ranges::any_of(known, [name](const char* x) { return name == x; });
}

std::string listed(std::initializer_list<const char*> known) {
  return known.size() == 0 ? "none"
                           : fmt::format("{}", fmt::join(std::vector<std::string>(known.begin(), known.end()), ", "));
}

/// A text of a client for an error message: short, and one line.
std::string shown(const std::string& text) {
  return printable(text.substr(0, 60));
}

} // namespace

query_reader::query_reader(const httplib::Request& x, std::initializer_list<const char*> known) : request_(x) {
  for (auto& [name, text] : x.params)
    if (!is_among(name, known))
      fail(fmt::format("there is no parameter '{}' here; there are: {}", shown(name), listed(known)));
    else if (x.get_param_value_count(name) > 1)
      fail(fmt::format("the parameter '{}' is given twice", shown(name)));
}

void query_reader::fail(std::string why) {
  if (!problem_)
    problem_ = invalid(std::move(why));
}

std::optional<std::string> query_reader::value(const char* name) const {
  if (!request_.has_param(name))
    return std::nullopt;
  return request_.get_param_value(name);
}

std::optional<uint64_t> query_reader::number(const char* name, uint64_t least, uint64_t most) {
  const auto text = value(name);
  if (!text)
    return std::nullopt;
  const auto result = whole_number(*text);
  if (result && *result >= least && *result <= most)
    return result;
  fail(fmt::format("{} must be a whole number from {} to {}, not '{}'", name, least, most, shown(*text)));
  return std::nullopt;
}

std::optional<std::string> query_reader::text(const char* name, size_t bytes_max) {
  auto result = value(name);
  if (!result)
    return std::nullopt;
  if (result->size() > bytes_max)
    fail(fmt::format("{} must not be longer than {} bytes", name, bytes_max));
  else if (!is_utf8(*result))
    fail(fmt::format("{} must be UTF-8", name));
  return result;
}

std::optional<device_id> query_reader::device(const char* name) {
  const auto text = value(name);
  if (!text)
    return std::nullopt;
  auto result = device_of_text(*text);
  if (result)
    return *result;
  fail(render(result.error()));
  return std::nullopt;
}

body_reader::body_reader(const std::string& body, std::initializer_list<const char*> known) : object_(json::object()) {
  if (body.empty())
    return;
  object_ = json::parse(body, nullptr, false);
  if (object_.is_discarded() || !object_.is_object()) {
    object_ = json::object();
    fail("the body must be a JSON object, such as {}");
  }
  for (auto& [name, field] : object_.items())
    if (!is_among(name, known))
      fail(fmt::format("there is no field '{}' here; there are: {}", shown(name), listed(known)));
}

void body_reader::fail(std::string why) {
  if (!problem_)
    problem_ = invalid(std::move(why));
}

const json* body_reader::value(const char* name) const {
  const auto found = object_.find(name);
  return found == object_.end() ? nullptr : &*found;
}

std::optional<uint64_t> body_reader::milliseconds(const char* name, double least, double most) {
  const auto* x = value(name);
  if (x == nullptr)
    return std::nullopt;
  const auto number = x->is_number() ? x->get<double>() : std::numeric_limits<double>::quiet_NaN();
  if (std::isfinite(number) && number >= least && number <= most)
    return static_cast<uint64_t>(number * 1e6);
  fail(fmt::format("{} must be a number from {} to {}", name, least, most));
  return std::nullopt;
}

std::optional<uint64_t> body_reader::number(const char* name, uint64_t most) {
  const auto* x = value(name);
  if (x == nullptr)
    return std::nullopt;
  if (x->is_number_unsigned() && x->get<uint64_t>() <= most)
    return x->get<uint64_t>();
  fail(fmt::format("{} must be a whole number from 0 to {}", name, most));
  return std::nullopt;
}

caf::expected<device_id> device_of_text(const std::string& text) {
  const bool is_hex = text.starts_with("0x") || text.starts_with("0X");
  const auto number = is_hex ? whole_number(std::string_view{text}.substr(2), 16) : whole_number(text);
  if (!number || *number == 0)
    return invalid(fmt::format("a device is named by its number, such as 0x4 or 4, not '{}'", shown(text)));
  return device_id{*number};
}

refusal refusal_of(const caf::error& problem) {
  const auto code = code_of(problem);
  const auto status = [code] {
    switch (code) {
      case errc::invalid_argument:
      case errc::out_of_range: return 400;
      case errc::permission_denied: return 403;
      case errc::unknown_device:
      case errc::unknown_communicator: return 404;
      case errc::refused:
      case errc::aborted:
      case errc::in_use: return 409;
      case errc::timed_out: return 504;
      case errc::unreachable:
      case errc::device_lost:
      case errc::too_many: return 503;
      default: return 500;
    }
  }();
  return {status, code == errc::ok ? "internal" : to_string(code), render(problem)};
}

} // namespace ringmaster::gateway
