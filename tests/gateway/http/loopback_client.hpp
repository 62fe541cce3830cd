#pragma once

#include <algorithm>
#include <cerrno>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

namespace ringmaster::test {

/// A plain connection to a server of this host, for requests that no HTTP library sends.
class loopback_client {
public:
  explicit loopback_client(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    is_connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    timeval limit{20, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  }
  ~loopback_client() { ::close(socket_); }
  loopback_client(const loopback_client&) = delete;
  loopback_client& operator=(const loopback_client&) = delete;

  bool is_connected() const { return is_connected_; }

  /// Returns false if the server has closed the connection.
  bool send(const std::string& text) {
    return ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }
  /// What comes next, until it contains `end` or the server closes the connection.
  std::string read_until(const std::string& end) {
    std::string result;
    char buffer[4096];
    for (size_t seen = 0; result.find(end, seen) == std::string::npos;) {
      const auto got = ::recv(socket_, buffer, sizeof buffer, 0);
      if (got <= 0)
        break;
      seen = result.size() - std::min(result.size(), end.size());
      result.append(buffer, static_cast<size_t>(got));
    }
    return result;
  }
  /// All until the server closes the connection. False: it does not within the limit.
  bool is_closed_by_server() {
    char buffer[4096];
    for (;;) {
      const auto got = ::recv(socket_, buffer, sizeof buffer, 0);
      if (got == 0 || (got < 0 && errno == ECONNRESET))
        return true;
      if (got < 0)
        return false;
    }
  }
  /// A small buffer, so that a server soon notices that this client does not read.
  void read_slowly() {
    const int bytes = 2048;
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  }

private:
  int socket_;
  bool is_connected_ = false;
};

} // namespace ringmaster::test
