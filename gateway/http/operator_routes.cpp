#include "gateway/http/operator_routes.hpp"

#include "gateway/http/api_request.hpp"
#include "messages/errc.hpp"
#include "runtime/text/quantity_text.hpp"
#include "runtime/text/utf8.hpp"

#include <spdlog/spdlog.h>

namespace ringmaster::gateway {

namespace {

using httplib::Request;
using httplib::Response;

struct fault_action {
  proto::FaultRequest request;
  std::string text; ///< "hangs for 300 ms"
};

std::string effect_of(const proto::FaultRequest& x) {
  switch (x.kind()) {
    case proto::FaultRequest::HANG:
      return x.delay_ns() == 0 ? "hangs" : fmt::format("hangs for {}", duration_text(x.delay_ns()));
    case proto::FaultRequest::SLOW:
      return x.delay_ns() == 0 ? "is as fast as before"
                               : fmt::format("starts every round {} later", duration_text(x.delay_ns()));
    default: return "dies";
  }
}

/// The fault that a request asks for. Errors: invalid_argument.
caf::expected<fault_action> fault_of(const std::string& action, const std::string& body) {
  constexpr double ms_max = 1e9;
  fault_action result;
  const auto* time_field = action == "hang" ? "for_ms" : action == "slow" ? "delay_ms" : "at_step";
  body_reader from{body, {time_field, "at_step"}};
  if (action == "hang") {
    result.request.set_kind(proto::FaultRequest::HANG);
    result.request.set_delay_ns(from.milliseconds("for_ms", 0.001, ms_max).value_or(0));
  } else if (action == "slow") {
    result.request.set_kind(proto::FaultRequest::SLOW);
    const auto delay_ns = from.milliseconds("delay_ms", 0, ms_max);
    if (!delay_ns)
      from.fail("delay_ms is needed: by how much each round of the device starts later; 0 restores its speed");
    result.request.set_delay_ns(delay_ns.value_or(0));
  }
  if (const auto step = from.number("at_step", UINT32_MAX)) {
    result.request.set_at_step(true);
    result.request.set_step(static_cast<uint32_t>(*step));
  }
  if (from.problem())
    return from.problem();
  result.text = effect_of(result.request);
  return result;
}

/// The entry of the status whose `key` is `value`; null: there is none.
const json* entry_of(const cluster_snapshot* now, const char* list, const char* key, const std::string& value) {
  if (now == nullptr)
    return nullptr;
  for (auto& x : now->status().at(list))
    if (x.at(key) == value)
      return &x;
  return nullptr;
}

void done(Response& to, const std::string& text, const std::vector<std::string>& details = {}) {
  to.status = 200;
  to.set_content(text_of(json{{"done", true}, {"text", text}, {"details", details}}), "application/json");
}

/// Counts an action while it runs.
class action_place {
public:
  action_place(std::atomic<int>& count, int most) : count_(count), is_free_(++count <= most) {}
  ~action_place() { --count_; }
  action_place(const action_place&) = delete;
  action_place& operator=(const action_place&) = delete;

  bool is_free() const { return is_free_; }

private:
  std::atomic<int>& count_;
  const bool is_free_;
};

void refuse_busy(Response& to) {
  http_server::refuse(to, {503, "too_busy", "other actions are under way: try again when they have ended"});
}

} // namespace

void operator_routes::add_to(http_server& server) {
  server.Post("/api/v1/devices/([^/]+)/(kill|hang|slow)", [this](const Request& x, Response& to) { inject(x, to); });
  server.Post("/api/v1/nodes/([^/]+)/drain", [this](const Request& x, Response& to) { drain(x, to); });
}

void operator_routes::inject(const Request& x, Response& to) {
  auto device = device_of_text(x.matches[1]);
  if (!device)
    return http_server::refuse(to, refusal_of(device.error()));
  auto fault = fault_of(x.matches[2], x.body);
  if (!fault)
    return http_server::refuse(to, refusal_of(fault.error()));
  const action_place place{actions_, actions_max};
  if (!place.is_free())
    return refuse_busy(to);
  const auto now = feed_.latest();
  const auto* known = entry_of(now.get(), "devices", "id", json_id(*device));
  const auto who = fmt::format("device {}{}", json_id(*device),
                               known != nullptr ? " of " + known->at("node").get<std::string>() : "");
  spdlog::info("an operator at {} wants: {} {}", x.remote_addr, printable(who), fault->text);
  if (auto problem = source_.inject(*device, fault->request))
    return http_server::refuse(to, refusal_of(problem));
  done(to, fmt::format("{} {}", who, fault->text));
}

void operator_routes::drain(const Request& x, Response& to) {
  const std::string node = x.matches[1];
  body_reader from{x.body, {"timeout_ms"}};
  constexpr uint64_t usual_ns = 30'000'000'000;
  const auto within_ns = from.milliseconds("timeout_ms", 1, drain_ms_max).value_or(usual_ns);
  if (from.problem())
    return http_server::refuse(to, refusal_of(from.problem()));
  const action_place place{actions_, actions_max};
  if (!place.is_free())
    return refuse_busy(to);
  const auto now = feed_.latest();
  if (entry_of(now.get(), "nodes", "name", node) == nullptr)
    return http_server::refuse(
      to, {404, "not_found",
           fmt::format("the cluster has no node '{}'; GET /api/v1/status lists them", printable(node.substr(0, 60)))});
  spdlog::info("an operator at {} drains {}", x.remote_addr, printable(node));
  auto left = source_.drain(node, caf::timespan{within_ns});
  if (!left)
    return http_server::refuse(to, refusal_of(left.error()));
  done(to, fmt::format("node {} has exited", node), *left);
}

} // namespace ringmaster::gateway
