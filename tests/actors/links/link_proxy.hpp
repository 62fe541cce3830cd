#pragma once

#include "actors/links/io_loop.hpp"
#include "actors/links/sockets.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <thread>

namespace ringmaster::test {

/// Stands between two processes and does to their connections what networks do. What comes back from the listener is
/// counted in bytes from each connection's start, the greeting's 88 and the hello's 24 included.
class link_proxy {
public:
  /// What happens to one connection's answers.
  struct trouble {
    std::optional<uint64_t> cut_after{};   ///< Closed behind that many bytes.
    std::optional<uint64_t> stop_after{};  ///< Nothing more is passed on, until `release`.
    std::optional<uint64_t> damage_byte{}; ///< One bit of this one is turned.
  };

  /// `troubles` of the connections in the order in which they are made; those behind have none.
  link_proxy(const std::string& target, std::deque<trouble> troubles) : troubles_(std::move(troubles)) {
    target_ = *numeric_address(*parse_endpoint(target));
    listener_ = std::move(*listen_at({"127.0.0.1", 0}));
    endpoint_ = own_end_text(listener_.descriptor);
    loop_ = std::move(*io_loop::make());
    door_.emplace(*this);
    thread_ = std::thread{[this] {
      while (!ends_) {
        loop_->turn(std::chrono::steady_clock::now() + std::chrono::seconds{10});
        if (released_)
          for (auto& x : pairs_)
            x->pump();
      }
    }};
  }

  ~link_proxy() {
    ends_ = true;
    loop_->wake();
    thread_.join();
  }

  const std::string& endpoint() const { return endpoint_; }
  void release() {
    released_ = true;
    loop_->wake();
  }
  uint64_t connections() const { return made_; }

private:
  struct pair;
  struct side : io_handler {
    side(pair& both, open_socket x) : owner(both), socket(std::move(x)) {}
    void on_ready(uint32_t) override { owner.pump(); }
    pair& owner;
    open_socket socket;
    uint64_t number = 0;
  };

  struct pair {
    pair(link_proxy& proxy, open_socket from, open_socket to, trouble what)
      : all(proxy), asks(*this, std::move(from)), answers(*this, std::move(to)), woe(what) {
      asks.number = all.loop_->watch(asks.socket.descriptor, EPOLLIN, asks);
      answers.number = all.loop_->watch(answers.socket.descriptor, EPOLLIN, answers);
    }

    void pump() {
      if (closed)
        return;
      std::array<char, 65536> bytes;
      auto asked = ::recv(asks.socket.descriptor, bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (asked > 0)
        send_all(answers.socket.descriptor, bytes.data(), static_cast<size_t>(asked));
      else if (asked == 0)
        return close();
      auto room = bytes.size();
      if (woe.cut_after)
        room = std::min<size_t>(room, *woe.cut_after - passed);
      if (woe.stop_after && !all.released_)
        room = std::min<size_t>(room, *woe.stop_after - passed);
      if (room == 0 && woe.cut_after && passed == *woe.cut_after)
        return close();
      if (room == 0)
        return all.loop_->change(answers.socket.descriptor, answers.number, 0); // stopped
      all.loop_->change(answers.socket.descriptor, answers.number, EPOLLIN);
      auto got = ::recv(answers.socket.descriptor, bytes.data(), room, MSG_DONTWAIT);
      if (got == 0)
        return close();
      if (got < 0)
        return;
      if (woe.damage_byte && *woe.damage_byte >= passed && *woe.damage_byte < passed + static_cast<uint64_t>(got))
        bytes[*woe.damage_byte - passed] ^= 1;
      passed += static_cast<uint64_t>(got);
      send_all(asks.socket.descriptor, bytes.data(), static_cast<size_t>(got));
    }

    void close() {
      closed = true;
      for (auto* x : {&asks, &answers}) {
        all.loop_->forget(x->socket.descriptor, x->number);
        x->socket = open_socket{};
      }
    }

    static void send_all(int to, const char* bytes, size_t size) {
      while (size > 0) {
        auto sent = ::send(to, bytes, size, MSG_NOSIGNAL); // blocks: these tests' readers read
        if (sent <= 0)
          return;
        bytes += sent;
        size -= static_cast<size_t>(sent);
      }
    }

    link_proxy& all;
    side asks, answers;
    trouble woe;
    uint64_t passed = 0;
    bool closed = false;
  };

  struct door : io_handler {
    explicit door(link_proxy& proxy) : all(proxy) { all.loop_->watch(all.listener_.descriptor, EPOLLIN, *this); }
    void on_ready(uint32_t) override {
      open_socket from{::accept4(all.listener_.descriptor, nullptr, nullptr, SOCK_CLOEXEC)};
      open_socket to{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
      if (from.descriptor < 0 || ::connect(to.descriptor, all.target_.get(), all.target_.size) != 0)
        return;
      trouble what;
      if (!all.troubles_.empty()) {
        what = all.troubles_.front();
        all.troubles_.pop_front();
      }
      ++all.made_;
      all.pairs_.push_back(std::make_unique<pair>(all, std::move(from), std::move(to), what));
    }
    link_proxy& all;
  };

  socket_address target_;
  open_socket listener_;
  std::string endpoint_;
  std::unique_ptr<io_loop> loop_;
  std::deque<trouble> troubles_;
  std::list<std::unique_ptr<pair>> pairs_;
  std::optional<door> door_;
  std::atomic<bool> ends_{false}, released_{false};
  std::atomic<uint64_t> made_{0};
  std::thread thread_;
};

} // namespace ringmaster::test
