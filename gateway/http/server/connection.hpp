#pragma once

#include <chrono>
#include <httplib.h>
#include <memory>
#include <openssl/ssl.h>
#include <string>

namespace ringmaster::gateway {

/// Limits of a connection. A client that sends or reads slowly has until a deadline, however many bytes it takes.
struct connection_limits {
  using milliseconds = std::chrono::milliseconds;

  milliseconds handshake{5'000};
  milliseconds request{10'000};     ///< From the first byte of a request to its last one.
  milliseconds response{60'000};    ///< For the whole answer, except an event stream.
  milliseconds event{5'000};        ///< For one piece of an event stream.
  milliseconds idle{15'000};        ///< Between two requests.
  size_t request_bytes = 48 * 1024; ///< Headers and body.
  size_t requests_max = 1000;       ///< On one connection.
};

/// A connection of a client, plain or with TLS. Owns the socket. One thread, except `interrupt`.
class connection final : public httplib::Stream {
public:
  using clock = std::chrono::steady_clock;

  /// `tls`: null for a plain connection.
  connection(int socket, SSL_CTX* tls, const connection_limits& limits);
  ~connection() override;
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  /// With TLS, shakes hands. Returns whether it worked.
  bool open();
  /// Waits for the first byte of a request and starts its deadline. Returns false if there is none within the limit.
  bool await_request();
  /// The answer starts, which has a deadline of its own.
  void start_response();
  /// The answer is an event stream, which may last for any time, but each piece has a deadline.
  void start_stream();
  /// After this answer the connection is closed: what follows in it may be the rest of a request that was refused.
  void close_after_answer() { closes_ = true; }
  bool closes() const { return closes_; }
  /// Whether the client has closed its end.
  bool peer_has_closed() const;
  /// Wakes the thread that waits for the client, and closes. Any thread.
  void interrupt();

  // -- httplib::Stream --
  bool is_readable() const override;
  bool is_writable() const override;
  ssize_t read(char* to, size_t size) override;
  ssize_t write(const char* from, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  int socket() const override { return socket_; }

private:
  struct ssl_deleter {
    void operator()(SSL* x) const { ::SSL_free(x); }
  };

  /// Waits until the socket is ready. Returns false at the deadline.
  bool await(short events, clock::time_point deadline) const;
  /// Reads what there is into the buffer. Returns whether there is any.
  bool fill(clock::time_point deadline);
  /// Returns whether all was written before the deadline.
  bool write_all(const char* from, size_t size);
  /// Whether the call should be repeated after it waited.
  bool await_tls(int result, clock::time_point deadline) const;

  const int socket_;
  const connection_limits limits_;
  std::unique_ptr<SSL, ssl_deleter> tls_;
  char buffer_[4096];
  size_t begin_ = 0, end_ = 0; ///< What the buffer has.
  size_t request_bytes_ = 0;   ///< Of this request so far.
  clock::time_point deadline_;
  bool is_stream_ = false;
  bool closes_ = false;
  bool has_failed_ = false; ///< A write: the client does not read, or has left.
};

} // namespace ringmaster::gateway
