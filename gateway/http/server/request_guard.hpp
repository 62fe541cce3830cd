#pragma once

#include "gateway/access/access_token.hpp"

#include <optional>
#include <set>
#include <string>

namespace ringmaster::gateway {

/// What the guard looks at. Header fields that are absent are empty; `counts` tells how often a field came.
struct request_facts {
  std::string method;
  std::string path;
  std::string target; ///< With the query.
  std::string host;
  size_t host_count = 0;
  std::string origin;
  std::string fetch_site; ///< Sec-Fetch-Site, which browsers send and scripts cannot set.
  std::string authorization;
  std::string content_type;
  bool has_transfer_encoding = false;
  bool is_of_own_user = false; ///< Known if `guard_rules::own_user_reading`.
};

struct guard_rules {
  bool tls = false;
  bool open_reading = true;           ///< No token is needed to read.
  bool own_user_reading = false;      ///< Processes of the gateway's user, and of root, on its host need none.
  std::optional<access_token> reader; ///< Of clients that only read.
  std::optional<access_token> operators;
  std::set<std::string> host_names; ///< That requests may name besides numeric addresses and localhost; lower case.
};

/// A request that is not served: the status of the answer and its error.
struct refusal {
  int status = 400;
  std::string code;
  std::string message;
};

/// Decides which requests are served, before their body is read.
/// - The Host header must be a numeric address, localhost or a configured name: a page of another site whose name is
///   rebound to this address sends its own name.
/// - What changes something is a POST with the operator's token and the content type application/json, from this
///   origin. Pages of other sites cannot send that without a preflight request, which is not answered.
class request_guard {
public:
  explicit request_guard(guard_rules rules) : rules_(std::move(rules)) {}

  std::optional<refusal> check(const request_facts& x) const;

  const guard_rules& rules() const { return rules_; }

private:
  std::optional<refusal> check_form(const request_facts& x) const;
  std::optional<refusal> check_host(const request_facts& x) const;
  std::optional<refusal> check_reading(const request_facts& x) const;
  std::optional<refusal> check_writing(const request_facts& x) const;
  bool is_operator(const request_facts& x) const;
  bool is_reader(const request_facts& x) const;

  const guard_rules rules_;
};

} // namespace ringmaster::gateway
