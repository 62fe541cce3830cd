#include "gateway/http/http_gateway.hpp"

#include "gateway/http/operator_routes.hpp"
#include "gateway/http/page_files.hpp"
#include "gateway/http/read_routes.hpp"
#include "gateway/http/state/client_source.hpp"

#include <chrono>

namespace ringmaster::gateway {

namespace {

feed_options feed_options_of(const http_options& x) {
  feed_options result;
  result.coordinator = x.coordinator;
  result.interval = x.interval;
  result.idle_interval = x.idle_interval;
  return result;
}

event_hub::limits hub_limits_of(const http_options& x) {
  event_hub::limits result;
  result.readers_max = x.event_streams_max;
  return result;
}

void add_page(http_server& server) {
  for (auto& file : page_files())
    server.Get(std::string{file.path}, [&file](const httplib::Request&, httplib::Response& to) {
      to.set_header("Cache-Control", "no-cache");
      to.set_content(std::string{file.bytes}, std::string{file.content_type}.c_str());
    });
}

} // namespace

struct http_gateway::parts {
  parts(std::unique_ptr<cluster_source> cluster, const http_options& x, server_options listening)
    : source(std::move(cluster)), hub(hub_limits_of(x)), feed(*source, hub, feed_options_of(x)),
      reading(*source, feed, hub, x.coordinator, listening.rules.operators.has_value()), operating(*source, feed),
      server(std::move(listening)) {
    reading.add_to(server);
    operating.add_to(server);
    add_page(server);
  }

  ~parts() {
    hub.close();
    server.stop();
  }

  std::unique_ptr<cluster_source> source;
  event_hub hub;
  cluster_feed feed;
  read_routes reading;
  operator_routes operating;
  http_server server;
};

caf::expected<std::unique_ptr<http_gateway>> http_gateway::start(
  caf::actor_system& system, coordinator_actor coordinator, const http_options& options) {
  constexpr auto limit = std::chrono::seconds{5};
  return start(std::make_unique<client_source>(system, std::move(coordinator), limit), options);
}

caf::expected<std::unique_ptr<http_gateway>> http_gateway::start(std::unique_ptr<cluster_source> source,
                                                                 const http_options& options) {
  auto listening = options.server();
  if (!listening)
    return std::move(listening.error());
  auto all = std::make_unique<parts>(std::move(source), options, std::move(*listening));
  if (auto problem = all->server.start())
    return problem;
  all->feed.start();
  return std::unique_ptr<http_gateway>{new http_gateway{std::move(all)}};
}

http_gateway::http_gateway(std::unique_ptr<parts> all) : parts_(std::move(all)) {}
http_gateway::~http_gateway() = default;

std::string http_gateway::url() const {
  auto& options = parts_->server.options();
  return fmt::format("{}://{}", options.tls ? "https" : "http",
                     ringmaster::text_of(endpoint{options.host, parts_->server.port()}));
}

std::string http_gateway::summary() const {
  auto& rules = parts_->server.options().rules;
  return fmt::format("HTTP at {}/, {}, {}", url(),
                     rules.open_reading       ? "reading needs no token"
                     : rules.own_user_reading ? "processes of this user may read"
                                              : "reading needs a token",
                     rules.operators ? "operators have a token" : "nothing can be changed");
}

} // namespace ringmaster::gateway
