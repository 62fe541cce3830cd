#pragma once

#include "gateway/http/server/request_guard.hpp"
#include "gateway/http/state/json.hpp"
#include "messages/ids.hpp"

#include <caf/error.hpp>
#include <caf/expected.hpp>
#include <httplib.h>

#include <initializer_list>
#include <optional>
#include <string>

namespace ringmaster::gateway {

/// The parameters of a request's address. Reads each as what it must be; the first mistake is kept.
class query_reader {
public:
  /// `known`: the parameters that the request may have.
  query_reader(const httplib::Request& x, std::initializer_list<const char*> known);

  std::optional<uint64_t> number(const char* name, uint64_t least, uint64_t most);
  std::optional<std::string> text(const char* name, size_t bytes_max);
  std::optional<device_id> device(const char* name);

  /// invalid_argument with the parameter and what is allowed; none: all are right.
  const caf::error& problem() const { return problem_; }
  void fail(std::string why);

private:
  std::optional<std::string> value(const char* name) const;

  const httplib::Request& request_;
  caf::error problem_;
};

/// The JSON object in the body of a request.
class body_reader {
public:
  /// `known`: the fields that the object may have. An empty body is an empty object.
  body_reader(const std::string& body, std::initializer_list<const char*> known);

  /// A number of milliseconds as nanoseconds.
  std::optional<uint64_t> milliseconds(const char* name, double least, double most);
  std::optional<uint64_t> number(const char* name, uint64_t most);

  const caf::error& problem() const { return problem_; }
  void fail(std::string why);

private:
  const json* value(const char* name) const;

  json object_;
  caf::error problem_;
};

/// "0x4" or "4". Errors: invalid_argument.
caf::expected<device_id> device_of_text(const std::string& text);

/// The answer for an error of the cluster: its code and message, and the status of HTTP that comes nearest.
refusal refusal_of(const caf::error& problem);

} // namespace ringmaster::gateway
