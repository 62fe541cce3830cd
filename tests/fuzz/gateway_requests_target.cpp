// What HTTP requests say in their address, their header and their body.
#include "gateway/http/api_request.hpp"
#include "runtime/invariants/ensure.hpp"
#include "tests/fuzz/fuzz_target.hpp"

namespace ringmaster::fuzz {

namespace {

gateway::request_facts facts_of(input_parts& from) {
  gateway::request_facts result;
  const auto flags = from.byte();
  result.method = (flags & 1) != 0 ? "POST" : "GET";
  result.has_transfer_encoding = (flags & 2) != 0;
  result.host_count = flags >> 2 & 3;
  for (auto* field : {&result.path, &result.target, &result.host, &result.origin, &result.fetch_site,
                      &result.authorization, &result.content_type})
    *field = from.part();
  return result;
}

/// Facts of a request, and its query or its body.
void read_requests(std::string_view bytes) {
  input_parts parts{bytes};
  gateway::guard_rules rules;
  rules.host_names = {"gateway.example"};
  const gateway::request_guard guard{rules};
  if (const auto refused = guard.check(facts_of(parts)))
    ensure(refused->status >= 400 && !refused->message.empty(), "a request is refused for a reason");
  const std::string rest{parts.rest()};
  httplib::Request request;
  httplib::detail::parse_query_text(rest, request.params);
  gateway::query_reader query{request, {"number", "text", "device"}};
  (void)query.number("number", 1, 1000);
  (void)query.text("text", 200);
  (void)query.device("device");
  gateway::body_reader body{rest, {"delay_ms", "step"}};
  (void)body.milliseconds("delay_ms", 0, 1e6);
  (void)body.number("step", 1000);
  if (body.problem())
    (void)gateway::refusal_of(body.problem());
}

const fuzz_target fuzz_gateway_requests{"gateway_requests", read_requests};

} // namespace

} // namespace ringmaster::fuzz
