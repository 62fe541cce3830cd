#include "actors/hosts/guarded_connection.hpp"

#include "actors/hosts/process_trust.hpp"

#include <caf/binary_deserializer.hpp>
#include <caf/io/basp/header.hpp>
#include <caf/io/basp/message_type.hpp>
#include <caf/io/basp_broker.hpp>

#include <algorithm>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <utility>

namespace ringmaster {

namespace {

namespace network = caf::io::network;
using caf::io::basp::message_type;

constexpr auto client_greeting = static_cast<uint8_t>(message_type::client_handshake);
constexpr auto server_greeting = static_cast<uint8_t>(message_type::server_handshake);

bool is_greeting(uint8_t kind) {
  return kind == client_greeting || kind == server_greeting;
}

/// Whether the other end has closed the connection, or its system has not acknowledged what was sent for some seconds.
/// A process that is stopped is not gone: its system acknowledges.
bool is_gone(int fd) {
  constexpr uint32_t gone_after_ms = 2000; // four heartbeats
  tcp_info info{};
  socklen_t size = sizeof info;
  return ::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0
         && (info.tcpi_state != TCP_ESTABLISHED || (info.tcpi_unacked > 0 && info.tcpi_last_ack_recv > gone_after_ms));
}

} // namespace

void claim_log::refused(const std::string& address, const caf::node_id& claimed) {
  std::scoped_lock lock{mutex_};
  if (auto times = claims_.happened(std::chrono::steady_clock::now()); times > 0)
    spdlog::warn("a connection from {} was closed: it claims to be the process {}, which has another connection that "
                 "works ({} since the last report)",
                 address, to_string(claimed), times);
}

void claim_log::malformed(const std::string& address) {
  std::scoped_lock lock{mutex_};
  if (auto times = malformed_.happened(std::chrono::steady_clock::now()); times > 0)
    spdlog::warn(
      "a connection from {} was closed: it brought what is no message of CAF's protocol, or a longer one than "
      "is allowed ({} since the last report)",
      address, times);
}

guarded_connection::guarded_connection(network::default_multiplexer& backend, int fd, side as,
                                       const connection_limits& limits, std::shared_ptr<claim_log> log, session with,
                                       tls_channel_ptr tls)
  : scribe(network::conn_hdl_from_socket(fd)), stream_(backend, fd, std::move(tls)), side_(as), limits_(limits),
    log_(std::move(log)), session_(std::move(with)), address_(guarded_connection::addr()) {}

guarded_connection::~guarded_connection() {
  known();
}

void guarded_connection::known() {
  waiting_ = nullptr;
  if (auto then = std::exchange(known_, nullptr))
    then();
}

// -- as CAF's own --------------------------------------------------------------------

void guarded_connection::graceful_shutdown() {
  stream_.graceful_shutdown();
  detach(&stream_.backend(), false);
}

std::string guarded_connection::addr() const {
  auto result = network::remote_addr_of_fd(stream_.fd());
  return result ? std::move(*result) : std::string{};
}

uint16_t guarded_connection::port() const {
  const auto result = network::remote_port_of_fd(stream_.fd());
  return result ? *result : uint16_t{0};
}

void guarded_connection::read_at_most(size_t bytes) {
  stream_.configure_read(caf::io::receive_policy::exactly(bytes));
  if (!std::exchange(launched_, true))
    stream_.start(this);
}

// -- memory ------------------------------------------------------------------------

void guarded_connection::configure_read(caf::io::receive_policy::config wanted) {
  auto most = greeted_ || side_ == side::made ? limits_.message_bytes_max : limits_.greeting_bytes_max;
  if (wanted.second > most) {
    refused_ = true; // of a header that `consume` has been given
    return;
  }
  if (!std::exchange(configured_, true))
    start_silence();
  wanted_ = wanted.second;
  read_next_piece();
}

/// Else CAF would give up a connection that it makes at its next heartbeat, whatever the limit.
void guarded_connection::start_silence() {
  auto* broker = side_ == side::made ? dynamic_cast<caf::io::basp_broker*>(parent()) : nullptr;
  if (broker == nullptr)
    return;
  if (const auto known = broker->ctx.find(hdl()); known != broker->ctx.end())
    known->second.last_seen = std::max(known->second.last_seen, broker->clock().now());
}

void guarded_connection::read_next_piece() {
  constexpr size_t trusted_max = 8u << 20; // larger ones are read in pieces: copying takes less than the network
  auto more = std::max({limits_.reserved_bytes, gathered_.size(), std::min(brought_, trusted_max)});
  read_at_most(std::min(wanted_ - gathered_.size(), more));
}

bool guarded_connection::gather(size_t bytes) {
  auto& piece = rd_buf();
  brought_ += bytes;
  if (gathered_.empty() && bytes == wanted_)
    return true;
  gathered_.insert(gathered_.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(bytes));
  if (gathered_.size() < wanted_) {
    read_next_piece();
    return false;
  }
  piece.swap(gathered_);
  std::vector<char>{}.swap(gathered_);
  return true;
}

// -- what comes --------------------------------------------------------------------

bool guarded_connection::consume(caf::execution_unit* context, const void*, size_t bytes) {
  caf::io::scribe_ptr alive{this};
  if (!gather(bytes))
    return true;
  auto& part = rd_buf();
  if (!std::exchange(content_follows_, false))
    return takes_header(part) ? pass_on(context) : refuse_malformed(context);
  if (kind_ != client_greeting) {
    drop_unless_admitted(context);
    return pass_on(context);
  }
  switch (identify(context, part)) {
    case identity::its_own: return pass_on(context);
    case identity::taken:
      held_ = part;
      if (waiting_)
        waiting_();
      return false; // nothing more is read
    case identity::another: return refuse(context);
    case identity::malformed: break;
  }
  return refuse_malformed(context);
}

bool guarded_connection::takes_header(const std::vector<char>& header) {
  constexpr size_t length_at = 4;
  if (header.size() < caf::io::basp::header_size)
    return false;
  kind_ = static_cast<uint8_t>(header[0]);
  content_follows_ = std::any_of(header.begin() + length_at, header.begin() + length_at + sizeof(uint32_t),
                                 [](char x) { return x != 0; });
  const auto expected = side_ == side::accepted ? client_greeting : server_greeting;
  if (is_greeting(kind_)) // CAF reads a content that is not there
    return content_follows_ && kind_ == expected && (side_ == side::accepted || !greeted_);
  return greeted_;
}

guarded_connection::identity guarded_connection::identify(caf::execution_unit* context,
                                                          const std::vector<char>& greeting) {
  std::string text{greeting.begin(), greeting.end()};
  if (greeted_) {
    if (text == greeting_)
      return identity::its_own;
    log_->refused(address_, claimed_);
    return identity::another;
  }
  auto* broker = dynamic_cast<caf::io::basp_broker*>(parent());
  greeting_ = std::move(text);
  if (broker == nullptr)
    return identity::its_own; // of no protocol that has identities
  caf::binary_deserializer source{context, greeting};
  if (source(claimed_) || !claimed_)
    return identity::malformed;
  if (claimed_ == broker->system().node())
    return identity::taken;
  const auto other = broker->instance.tbl().lookup_direct(claimed_);
  if (!other || *other == hdl())
    return identity::its_own;
  const auto fd = static_cast<int>(other->id());
  if (broker->valid(*other) && is_gone(fd)) // else what it has brought is still being delivered
    ::shutdown(fd, SHUT_RDWR);              // as if its other end had closed it
  return identity::taken;
}

void guarded_connection::look_again(caf::execution_unit* context) {
  caf::io::scribe_ptr alive{this};
  if (detached() || held_.empty())
    return;
  if (is_gone(static_cast<int>(hdl().id())))
    return close(context); // it must not replace a younger connection that lives
  switch (identify(context, held_)) {
    case identity::taken: return;
    case identity::its_own: break;
    case identity::another:
    case identity::malformed: return close(context);
  }
  rd_buf() = std::exchange(held_, {});
  if (!pass_on(context))
    return;
  add_to_loop();
  if (stream_.has_more())
    stream_.handle_event(network::operation::read);
}

bool guarded_connection::pass_on(caf::execution_unit* context) {
  constexpr size_t kept_max = 16u << 20;
  const bool was_greeting = is_greeting(kind_) && !content_follows_;
  bool goes_on = scribe::consume(context, rd_buf().data(), rd_buf().size());
  if (refused_)
    return refuse_malformed(context);
  if (rd_buf().capacity() > kept_max)
    std::vector<char>{}.swap(rd_buf()); // of a message that was handled
  if (goes_on && was_greeting && !std::exchange(greeted_, true))
    known();
  return goes_on;
}

bool guarded_connection::refuse_malformed(caf::execution_unit* context) {
  log_->malformed(address_);
  return refuse(context);
}

void guarded_connection::drop_unless_admitted(caf::execution_unit* context) {
  auto* broker = is_greeting(kind_) ? nullptr : dynamic_cast<caf::io::basp_broker*>(parent());
  if (broker == nullptr)
    return; // of no protocol that has actors, or of a connection that is not greeted yet
  const auto known = broker->ctx.find(hdl());
  if (known == broker->ctx.end())
    return; // CAF has closed it
  auto& header = known->second.hdr;
  if (!guard_) {
    const auto process = side_ == side::accepted ? claimed_ : broker->instance.tbl().lookup_direct(hdl());
    guard_.emplace(process_trust::of(broker->system()).peers(), process,
                   connected_peer{session_.peer, fmt::format("{}:{}", address_, guarded_connection::port()),
                                  to_string(process)});
  }
  if (!guard_->admits(*broker, header, rd_buf(), context))
    header.operation = message_type::heartbeat; // the only frame in which CAF does nothing with a content
}

bool guarded_connection::refuse(caf::execution_unit* context) {
  known();
  io_failure(context, network::operation::read);
  return false;
}

void guarded_connection::close(caf::execution_unit* context) {
  caf::io::scribe_ptr alive{this};
  if (!held_.empty() && !is_gone(static_cast<int>(hdl().id())))
    log_->refused(address_, claimed_);
  refuse(context);
  remove_from_loop();
}

} // namespace ringmaster
