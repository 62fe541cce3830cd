#pragma once

#include "gateway/http/server/connection.hpp"
#include "gateway/http/server/request_guard.hpp"
#include "gateway/http/server/tls_context.hpp"

#include <caf/error.hpp>

#include <atomic>
#include <functional>
#include <map>
#include <set>
#include <thread>

namespace ringmaster::gateway {

class worker_pool;

struct server_options {
  std::string host = "127.0.0.1";
  uint16_t port = 0; ///< 0: any free port.
  tls_context tls;   ///< Null: without TLS.
  guard_rules rules;
  connection_limits limits;
  size_t connections_max = 96;
  size_t body_bytes_max = 16 * 1024;
};

/// An HTTP/1.1 server on cpp-httplib. Connections, their limits and TLS are those of `connection`; each request passes
/// a `request_guard` first; every answer has headers that keep browsers from misusing it; errors are JSON.
class http_server final : private httplib::Server {
public:
  explicit http_server(server_options options);
  ~http_server() override;

  using httplib::Server::Get;
  using httplib::Server::Post;

  /// Starts to listen on a thread of its own, after all routes were added. Errors: io_error with the address.
  caf::error start();
  /// Closes all connections and waits for their threads.
  void stop();

  uint16_t port() const { return port_; }
  const server_options& options() const { return options_; }

  /// The connection of the request that this thread handles.
  static connection& current();
  /// Makes the answer an error: {"error": {"code": ..., "message": ...}}.
  static void refuse(httplib::Response& to, const refusal& why);

  struct counts {
    std::map<std::pair<std::string, int>, uint64_t> requests; ///< By method and status.
    uint64_t connections = 0;
    uint64_t connections_refused = 0;
    size_t connections_open = 0;
  };
  counts counted() const;

private:
  bool process_and_close_socket(int socket) override;
  void serve(connection& link);
  /// For a connection beyond the limit.
  void refuse_connection(connection& link);
  HandlerResponse guard(const httplib::Request& x, httplib::Response& to) const;
  void finish(const httplib::Request& x, httplib::Response& to);
  bool is_crowded() const;

  const server_options options_;
  const request_guard guard_;
  uint16_t port_ = 0;
  std::thread thread_;
  std::atomic<worker_pool*> pool_ = nullptr; ///< Of the running server, which owns it.
  std::atomic<bool> stops_ = false, ended_ = false;
  mutable std::mutex mutex_;
  std::set<connection*> open_;
  counts counts_;
};

} // namespace ringmaster::gateway
