#include "gateway/http/server/http_server.hpp"

#include "gateway/access/peer_user.hpp"
#include "gateway/http/server/worker_pool.hpp"
#include "gateway/http/state/json.hpp"
#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/text/endpoint.hpp"

#include <spdlog/spdlog.h>

#include <cstring>

namespace ringmaster::gateway {

namespace {

thread_local connection* current_connection = nullptr;

struct safety_header {
  const char* name;
  const char* value;
};
/// Of every answer: a page of this server loads and sends only here, is shown in no frame, and no content is guessed.
constexpr safety_header safety_headers[]{
  {"Content-Security-Policy", "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; "
                              "form-action 'none'; frame-ancestors 'none'"},
  {"X-Content-Type-Options", "nosniff"},
  {"X-Frame-Options", "DENY"},
  {"Referrer-Policy", "no-referrer"},
  {"Cross-Origin-Opener-Policy", "same-origin"},
  {"Cross-Origin-Resource-Policy", "same-origin"},
};

const char* code_of_status(int status) {
  switch (status) {
    case 404: return "not_found";
    case 500: return "internal";
    default: return "bad_request";
  }
}

const char* text_of_status(int status) {
  switch (status) {
    case 404: return "there is nothing at this address; /api/v1/openapi.json has the addresses";
    case 413: return "the body is larger than this server accepts";
    case 414: return "the address is longer than this server accepts";
    case 500: return "the server has failed; its log says why";
    default: return "this is no HTTP request that this server understands";
  }
}

local_connection ends_of(const connection& x) {
  local_connection result;
  int from = 0, to = 0;
  x.get_remote_ip_and_port(result.from, from);
  x.get_local_ip_and_port(result.to, to);
  result.from_port = static_cast<uint16_t>(from);
  result.to_port = static_cast<uint16_t>(to);
  return result;
}

request_facts facts_of(const httplib::Request& x) {
  request_facts result;
  result.method = x.method;
  result.path = x.path;
  result.target = x.target;
  result.host = x.get_header_value("Host");
  result.host_count = x.get_header_value_count("Host");
  result.origin = x.get_header_value("Origin");
  result.fetch_site = x.get_header_value("Sec-Fetch-Site");
  result.authorization = x.get_header_value("Authorization");
  result.content_type = x.get_header_value("Content-Type");
  result.has_transfer_encoding = x.has_header("Transfer-Encoding");
  return result;
}

} // namespace

http_server::http_server(server_options options) : options_(std::move(options)), guard_(options_.rules) {
  set_payload_max_length(options_.body_bytes_max);
  // Of what answers say; `connection` keeps to the same.
  set_keep_alive_max_count(options_.limits.requests_max);
  set_keep_alive_timeout(std::chrono::duration_cast<std::chrono::seconds>(options_.limits.idle).count());
  set_pre_routing_handler([this](const auto& x, auto& to) { return guard(x, to); });
  set_post_routing_handler([this](const auto& x, auto& to) { finish(x, to); });
  set_error_handler(HandlerWithResponse{[](const httplib::Request&, httplib::Response& to) {
    if (to.body.empty())
      refuse(to, {to.status, code_of_status(to.status), text_of_status(to.status)});
    return HandlerResponse::Handled;
  }});
  set_exception_handler([](const httplib::Request& x, httplib::Response& to, std::exception_ptr what) {
    try {
      std::rethrow_exception(std::move(what));
    } catch (const std::exception& problem) {
      spdlog::error("HTTP: {} {} failed: {}", x.method, x.path, problem.what());
    } catch (...) {
      spdlog::error("HTTP: {} {} failed", x.method, x.path);
    }
    refuse(to, {500, code_of_status(500), text_of_status(500)});
  });
  new_task_queue = [this] {
    auto* pool = new worker_pool{options_.connections_max}; // httplib deletes it
    pool_ = pool;
    return pool;
  };
}

http_server::~http_server() {
  stop();
}

caf::error http_server::start() {
  ensure(!thread_.joinable(), "a server is started once");
  const auto bound = options_.port == 0                           ? bind_to_any_port(options_.host)
                     : bind_to_port(options_.host, options_.port) ? int{options_.port}
                                                                  : -1;
  if (bound <= 0)
    return make_error(errc::io_error,
                      fmt::format("cannot listen for HTTP at {}: {}", text_of(endpoint{options_.host, options_.port}),
                                  errno != 0 ? std::strerror(errno) : "the address is not of this host"));
  port_ = static_cast<uint16_t>(bound);
  thread_ = std::thread{[this] {
    if (!listen_after_bind() && !stops_)
      spdlog::error("HTTP: the server no longer accepts connections");
    ended_ = true;
  }};
  return caf::none;
}

void http_server::stop() {
  if (!thread_.joinable())
    return;
  stops_ = true;
  while (!is_running() && !ended_) // it stops a server that runs only
    std::this_thread::yield();
  httplib::Server::stop();
  {
    std::scoped_lock lock{mutex_};
    for (auto* link : open_)
      link->interrupt();
  }
  thread_.join();
}

connection& http_server::current() {
  ensure(current_connection != nullptr, "a request is handled on its connection's thread");
  return *current_connection;
}

void http_server::refuse(httplib::Response& to, const refusal& why) {
  to.status = why.status;
  to.set_content(text_of(json{{"error", {{"code", why.code}, {"message", why.message}}}}), "application/json");
  if (why.status == 401)
    to.set_header("WWW-Authenticate", "Bearer realm=\"ringmaster\"");
  if (why.status == 405)
    to.set_header("Allow", "GET, HEAD, POST");
  if (why.status == 503)
    to.set_header("Retry-After", "1");
}

http_server::counts http_server::counted() const {
  std::scoped_lock lock{mutex_};
  auto result = counts_;
  result.connections_open = open_.size();
  return result;
}

bool http_server::process_and_close_socket(int socket) {
  connection link{socket, options_.tls.get(), options_.limits};
  {
    std::scoped_lock lock{mutex_};
    if (stops_)
      return false;
    ++counts_.connections;
    open_.insert(&link);
  }
  current_connection = &link;
  if (worker_pool::is_overflow())
    refuse_connection(link);
  else if (link.open())
    serve(link);
  current_connection = nullptr;
  std::scoped_lock lock{mutex_};
  open_.erase(&link);
  return true;
}

void http_server::serve(connection& link) {
  for (size_t left = options_.limits.requests_max; left > 0 && !stops_ && link.await_request(); --left) {
    bool closed = false;
    const bool is_last = left == 1 || is_crowded();
    const auto ignore_ranges = [](httplib::Request& x) { x.ranges.clear(); };
    if (!process_request(link, is_last, closed, ignore_ranges) || closed || is_last || link.closes())
      return;
  }
}

bool http_server::is_crowded() const {
  const auto* pool = pool_.load();
  return pool != nullptr && pool->busy() * 4 > options_.connections_max * 3;
}

void http_server::refuse_connection(connection& link) {
  {
    std::scoped_lock lock{mutex_};
    ++counts_.connections_refused;
  }
  if (options_.tls) // a handshake would delay the connections that wait
    return;
  constexpr std::string_view answer = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n"
                                      "Content-Type: application/json\r\nContent-Length: 71\r\n\r\n"
                                      R"({"error":{"code":"too_busy","message":"too many connections are open"}})";
  link.write(answer.data(), answer.size()); // fits the socket's buffer
}

http_server::HandlerResponse http_server::guard(const httplib::Request& x, httplib::Response& to) const {
  auto facts = facts_of(x);
  if (guard_.rules().own_user_reading)
    facts.is_of_own_user = !check_own_user(ends_of(current()));
  const auto no = guard_.check(facts);
  if (!no)
    return HandlerResponse::Unhandled;
  current().close_after_answer(); // its body was not read
  refuse(to, *no);
  return HandlerResponse::Handled;
}

void http_server::finish(const httplib::Request& x, httplib::Response& to) {
  for (auto& [name, value] : safety_headers)
    to.set_header(name, value);
  if (!to.has_header("Cache-Control"))
    to.set_header("Cache-Control", "no-store");
  auto& link = current();
  if (to.status >= 400 && to.status != 404)
    link.close_after_answer();
  if (link.closes()) {
    to.headers.erase("Keep-Alive");
    to.headers.erase("Connection");
    to.set_header("Connection", "close");
  }
  link.start_response();
  std::scoped_lock lock{mutex_};
  const bool is_known = x.method == "GET" || x.method == "HEAD" || x.method == "POST";
  ++counts_.requests[{is_known ? x.method : "other", to.status}];
}

} // namespace ringmaster::gateway
