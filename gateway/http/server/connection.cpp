#include "gateway/http/server/connection.hpp"

#include "runtime/invariants/ensure.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace ringmaster::gateway {

namespace {

/// Both ends of a socket, as numbers.
void name(const sockaddr_storage& address, socklen_t bytes, std::string& ip, int& port) {
  char host[NI_MAXHOST], service[NI_MAXSERV];
  if (::getnameinfo(reinterpret_cast<const sockaddr*>(&address), bytes, host, sizeof host, service, sizeof service,
                    NI_NUMERICHOST | NI_NUMERICSERV)
      != 0)
    return;
  ip = host;
  port = std::atoi(service);
}

} // namespace

connection::connection(int socket, SSL_CTX* tls, const connection_limits& limits) : socket_(socket), limits_(limits) {
  ensure(socket >= 0, "a connection has a socket");
  ::fcntl(socket_, F_SETFL, ::fcntl(socket_, F_GETFL) | O_NONBLOCK);
  ::fcntl(socket_, F_SETFD, FD_CLOEXEC);
  const int yes = 1;
  ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  if (tls == nullptr)
    return;
  tls_.reset(::SSL_new(tls));
  if (tls_)
    ::SSL_set_fd(tls_.get(), socket_);
  else
    closes_ = true; // no memory
}

connection::~connection() {
  if (has_failed_) { // what the client has not read by now is dropped with the connection
    const linger at_once{1, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    ::close(socket_);
    return;
  }
  if (tls_ && ::SSL_is_init_finished(tls_.get()))
    ::SSL_shutdown(tls_.get()); // sends the notice; the answer is not awaited
  ::ERR_clear_error();
  tls_.reset();
  ::shutdown(socket_, SHUT_WR);
  char rest[1024]; // else the client may get a reset before it has read the answer
  for (int i = 0; i < 16 && ::recv(socket_, rest, sizeof rest, MSG_DONTWAIT) > 0; ++i)
    ;
  ::close(socket_);
}

bool connection::open() {
  if (closes_)
    return false;
  deadline_ = clock::now() + limits_.handshake;
  if (!tls_)
    return true;
  for (;;) {
    ::ERR_clear_error();
    const auto result = ::SSL_accept(tls_.get());
    if (result == 1)
      return true;
    if (!await_tls(result, deadline_))
      return false;
  }
}

bool connection::await_request() {
  request_bytes_ = 0;
  is_stream_ = false;
  if (begin_ == end_ && !fill(clock::now() + limits_.idle))
    return false;
  deadline_ = clock::now() + limits_.request;
  return true;
}

void connection::start_response() {
  deadline_ = clock::now() + limits_.response;
}

void connection::start_stream() {
  is_stream_ = true;
  closes_ = true;
}

bool connection::peer_has_closed() const {
  pollfd x{socket_, POLLRDHUP, 0};
  return ::poll(&x, 1, 0) > 0 && (x.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

void connection::interrupt() {
  ::shutdown(socket_, SHUT_RDWR);
}

bool connection::await(short events, clock::time_point deadline) const {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - clock::now()).count();
    if (left <= 0)
      return false;
    pollfd x{socket_, events, 0};
    const auto ready = ::poll(&x, 1, static_cast<int>(std::min<int64_t>(left, 60'000)));
    if (ready > 0)
      return true;
    if (ready < 0 && errno != EINTR)
      return false;
  }
}

bool connection::await_tls(int result, clock::time_point deadline) const {
  switch (::SSL_get_error(tls_.get(), result)) {
    case SSL_ERROR_WANT_READ: return await(POLLIN, deadline);
    case SSL_ERROR_WANT_WRITE: return await(POLLOUT, deadline);
    default: return false;
  }
}

bool connection::fill(clock::time_point deadline) {
  ensure(begin_ == end_, "the buffer is filled when it is empty");
  begin_ = end_ = 0;
  for (;;) {
    if (tls_) {
      ::ERR_clear_error();
      const auto got = ::SSL_read(tls_.get(), buffer_, sizeof buffer_);
      if (got > 0) {
        end_ = static_cast<size_t>(got);
        return true;
      }
      if (!await_tls(got, deadline))
        return false;
      continue;
    }
    const auto got = ::recv(socket_, buffer_, sizeof buffer_, 0);
    if (got > 0) {
      end_ = static_cast<size_t>(got);
      return true;
    }
    const bool again = got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
    if (!again || !await(POLLIN, deadline))
      return false;
  }
}

ssize_t connection::read(char* to, size_t size) {
  if (request_bytes_ >= limits_.request_bytes)
    return -1;
  if (begin_ == end_ && !fill(deadline_))
    return -1;
  const auto count = std::min({size, end_ - begin_, limits_.request_bytes - request_bytes_});
  std::memcpy(to, buffer_ + begin_, count);
  begin_ += count;
  request_bytes_ += count;
  return static_cast<ssize_t>(count);
}

ssize_t connection::write(const char* from, size_t size) {
  has_failed_ = has_failed_ || !write_all(from, size);
  return has_failed_ ? -1 : static_cast<ssize_t>(size);
}

bool connection::write_all(const char* from, size_t size) {
  const auto deadline = is_stream_ ? clock::now() + limits_.event : deadline_;
  size_t done = 0;
  while (done < size) {
    if (tls_) {
      ::ERR_clear_error();
      const auto put = ::SSL_write(tls_.get(), from + done, static_cast<int>(std::min<size_t>(size - done, 1 << 16)));
      if (put > 0)
        done += static_cast<size_t>(put);
      else if (!await_tls(put, deadline))
        return false;
      continue;
    }
    const auto put = ::send(socket_, from + done, size - done, MSG_NOSIGNAL);
    if (put > 0)
      done += static_cast<size_t>(put);
    else if ((errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) || !await(POLLOUT, deadline))
      return false;
  }
  return true;
}

bool connection::is_readable() const {
  return begin_ < end_ || await(POLLIN, deadline_);
}

bool connection::is_writable() const {
  return await(POLLOUT, is_stream_ ? clock::now() + limits_.event : deadline_);
}

void connection::get_remote_ip_and_port(std::string& ip, int& port) const {
  sockaddr_storage address{};
  socklen_t bytes = sizeof address;
  if (::getpeername(socket_, reinterpret_cast<sockaddr*>(&address), &bytes) == 0)
    name(address, bytes, ip, port);
}

void connection::get_local_ip_and_port(std::string& ip, int& port) const {
  sockaddr_storage address{};
  socklen_t bytes = sizeof address;
  if (::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &bytes) == 0)
    name(address, bytes, ip, port);
}

} // namespace ringmaster::gateway
