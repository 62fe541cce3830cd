#include "gateway/http/read_routes.hpp"

#include "gateway/http/api_request.hpp"
#include "gateway/http/metrics/process_metrics.hpp"
#include "gateway/http/operator_routes.hpp"
#include "gateway/http/page_files.hpp"
#include "gateway/http/state/journal_search.hpp"
#include "gateway/http/trace_download.hpp"
#include "messages/errc.hpp"
#include "messages/version.hpp"
#include "runtime/journal/record_filter.hpp"

#include <chrono>

namespace ringmaster::gateway {

namespace {

using httplib::Request;
using httplib::Response;

constexpr std::chrono::seconds comment_interval{10};

void answer(Response& to, const json& x) {
  to.status = 200;
  to.set_content(text_of(x), "application/json");
}

void answer(Response& to, const caf::expected<json>& x) {
  if (x)
    answer(to, *x);
  else
    http_server::refuse(to, refusal_of(x.error()));
}

void answer_text(Response& to, int status, const std::string& text) {
  to.status = status;
  to.set_content(text + '\n', "text/plain; charset=utf-8");
}

/// Answers for a parameter that is wrong, and returns whether one is.
bool is_wrong(const query_reader& query, Response& to) {
  if (query.problem())
    http_server::refuse(to, refusal_of(query.problem()));
  return static_cast<bool>(query.problem());
}

journal_query query_of(query_reader& from) {
  journal_query result;
  const auto after = from.number("after", 0, UINT64_MAX - 1);
  const auto before = from.number("before", 1, UINT64_MAX - 1);
  if (after && before)
    from.fail("give after or before, not both");
  result.forward = after.has_value();
  result.after = after.value_or(0);
  result.before = before.value_or(0);
  result.limit = static_cast<uint32_t>(from.number("limit", 1, journal_query::limit_max).value_or(100));
  result.kind = from.text("kind", 32).value_or("");
  result.text = from.text("text", journal_query::text_bytes_max).value_or("");
  result.communicator = communicator_id{from.number("communicator", 1, UINT64_MAX).value_or(0)};
  result.device = from.device("device").value_or(device_id{});
  return result;
}

/// Writes the events of one reader until it leaves, is too slow, or the server stops.
class event_stream {
public:
  event_stream(std::unique_ptr<event_hub::reader> reader, connection& link) : reader_(std::move(reader)), link_(link) {}

  /// Returns whether it goes on.
  bool write(httplib::DataSink& sink) {
    constexpr std::chrono::seconds wait_max{1}; // to notice that the client has left
    auto news = reader_->next(wait_max);
    const auto now = std::chrono::steady_clock::now();
    if (link_.peer_has_closed())
      return false;
    for (auto& event : news.events)
      if (!put(sink, *event))
        return false;
    if (news.now != event_hub::reader::state::open) {
      put(sink, event_text("end", {{"reason", news.now == event_hub::reader::state::closed
                                                ? "the gateway stops"
                                                : "this reader is too slow: connect again for a new snapshot"}}));
      sink.done();
      return true;
    }
    if (now - written_ >= comment_interval)
      return put(sink, ": the stream is open\n\n");
    return true;
  }

private:
  bool put(httplib::DataSink& sink, const std::string& text) {
    written_ = std::chrono::steady_clock::now();
    return sink.write(text.data(), text.size());
  }

  std::unique_ptr<event_hub::reader> reader_;
  connection& link_;
  std::chrono::steady_clock::time_point written_ = std::chrono::steady_clock::now();
};

} // namespace

read_routes::read_routes(cluster_source& source, cluster_feed& feed, event_hub& hub, std::string coordinator,
                         bool has_operators)
  : source_(source), feed_(feed), hub_(hub), coordinator_(std::move(coordinator)), has_operators_(has_operators),
    started_ms_(
      std::chrono::duration<double, std::milli>(std::chrono::system_clock::now().time_since_epoch()).count()) {}

void read_routes::add_to(http_server& server) {
  add_health(server);
  add_documents(server);
  add_journal(server);
  add_trace(server);
  add_events(server);
}

void read_routes::add_health(http_server& server) {
  server.Get("/healthz", [](const Request&, Response& to) { answer_text(to, 200, "ok"); });
  server.Get("/readyz", [this](const Request&, Response& to) {
    const auto problem = feed_.ready();
    answer_text(to, problem ? 503 : 200, problem ? render(problem) : "ready");
  });
  server.Get("/metrics", [this, &server](const Request&, Response& to) {
    to.set_content(metrics(server), "text/plain; version=0.0.4; charset=utf-8");
  });
}

std::string read_routes::metrics(const http_server& server) const {
  metric_page page;
  feed_.write_metrics(page);
  const auto http = server.counted();
  page.counter("ringmaster_gateway_http_requests_total", "Requests that were answered, by method and status.");
  for (auto& [of, count] : http.requests)
    page.add(count, {{"method", of.first}, {"status", std::to_string(of.second)}});
  page.counter("ringmaster_gateway_http_connections_total", "Connections that were accepted.").add(http.connections);
  page.counter("ringmaster_gateway_http_connections_refused_total", "Connections beyond the limit.")
    .add(http.connections_refused);
  page.gauge("ringmaster_gateway_http_connections", "Open connections.").add(uint64_t{http.connections_open});
  page.gauge("ringmaster_gateway_event_streams", "Readers of events.").add(uint64_t{hub_.readers()});
  page.counter("ringmaster_gateway_event_streams_dropped_total", "Readers of events that were too slow.")
    .add(hub_.dropped());
  page.counter("ringmaster_gateway_event_streams_refused_total", "Readers of events beyond the limit.")
    .add(hub_.refused());
  write_process(page);
  return page.text();
}

json read_routes::info(const http_server& server) const {
  auto kinds = json::array();
  for (auto kind : record_kinds())
    kinds.push_back(kind);
  auto& options = server.options();
  return {{"program", "ringmaster-gateway"},
          {"version", ringmaster_version},
          {"api", "v1"},
          {"started_ms", started_ms_},
          {"coordinator", coordinator_},
          {"operators", has_operators_},
          {"record_kinds", std::move(kinds)},
          {"limits",
           {{"body_bytes", options.body_bytes_max},
            {"header_bytes", options.limits.request_bytes - options.body_bytes_max},
            {"connections", options.connections_max},
            {"event_streams", hub_.most().readers_max},
            {"journal_records", journal_query::limit_max},
            {"trace_records", trace_records_max},
            {"drain_ms", drain_ms_max}}},
          {"update_interval_ms", feed_.options().interval.count()}};
}

void read_routes::add_documents(http_server& server) {
  server.Get("/api/v1/openapi.json",
             [](const Request&, Response& to) { to.set_content(std::string{openapi_document()}, "application/json"); });
  server.Get("/api/v1/info", [this, &server](const Request&, Response& to) { answer(to, info(server)); });
  server.Get("/api/v1/status", [this](const Request& x, Response& to) {
    if (is_wrong(query_reader{x, {}}, to))
      return;
    if (const auto now = feed_.latest())
      to.set_content(*now->text(), "application/json");
    else
      http_server::refuse(to, {503, "unavailable", render(feed_.ready())});
  });
  server.Get("/api/v1/timeline", [this](const Request& x, Response& to) {
    if (!is_wrong(query_reader{x, {}}, to))
      answer(to, feed_.timeline_events());
  });
  server.Get("/api/v1/trainings", [this](const Request& x, Response& to) {
    query_reader query{x, {"points"}};
    const auto points = query.number("points", 2, 2000).value_or(500);
    if (!is_wrong(query, to))
      answer(to, feed_.trainings(points));
  });
  server.Get("/api/v1/schedule", [](const Request& x, Response& to) {
    query_reader query{x, {"kind", "algorithm", "ranks"}};
    const auto kind = query.text("kind", 32).value_or("all_reduce");
    const auto algorithm = query.text("algorithm", 64).value_or("ring");
    const auto ranks = query.number("ranks", 1, 64).value_or(8);
    if (!is_wrong(query, to))
      answer(to, schedule_json(kind, algorithm, static_cast<uint32_t>(ranks)));
  });
}

void read_routes::add_journal(http_server& server) {
  server.Get("/api/v1/journal", [this](const Request& x, Response& to) {
    query_reader parameters{x, {"after", "before", "limit", "kind", "text", "communicator", "device"}};
    const auto query = query_of(parameters);
    if (!is_wrong(parameters, to))
      answer(to, search_journal(source_, query));
  });
}

void read_routes::add_trace(http_server& server) {
  server.Get("/api/v1/trace", [this](const Request& x, Response& to) {
    query_reader query{x, {"last"}};
    const auto last = query.number("last", 1, trace_records_max).value_or(20'000);
    if (is_wrong(query, to))
      return;
    if (makes_trace_.exchange(true))
      return http_server::refuse(to, {503, "too_busy", "another trace is being made: try again in a few seconds"});
    auto trace = trace_of_journal(source_, last);
    makes_trace_ = false;
    if (!trace)
      return http_server::refuse(to, refusal_of(trace.error()));
    to.set_header("Content-Disposition", "attachment; filename=\"ringmaster-trace.json\"");
    to.set_content(std::move(*trace), "application/json");
  });
}

void read_routes::add_events(http_server& server) {
  server.Get("/api/v1/events", [this](const Request& x, Response& to) {
    if (is_wrong(query_reader{x, {}}, to))
      return;
    if (x.method == "HEAD")
      return to.set_content("", "text/event-stream");
    auto reader = hub_.open();
    if (!reader)
      return http_server::refuse(to, {503, "too_busy",
                                      feed_.latest() ? "too many readers of events are connected"
                                                     : "there is no state of the cluster yet"});
    auto& link = http_server::current();
    link.start_stream();
    auto stream = std::make_shared<event_stream>(std::move(reader), link);
    to.set_header("X-Accel-Buffering", "no"); // a proxy must pass events on at once
    to.set_chunked_content_provider("text/event-stream",
                                    [stream](size_t, httplib::DataSink& sink) { return stream->write(sink); });
  });
}

} // namespace ringmaster::gateway
