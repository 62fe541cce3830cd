#include "actors/hosts/doorman.hpp"

#include "actors/scheduling/awake_clock.hpp"

#include <caf/io/network/doorman_impl.hpp>

#include <algorithm>
#include <deque>
#include <fcntl.h>
#include <memory>
#include <mutex>
#include <optional>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace ringmaster {

namespace {

namespace network = caf::io::network;

uint64_t descriptors_max() {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  return files.rlim_cur;
}

/// A connection whose other end has not greeted yet; `who` is null when it has, or is gone.
struct stranger {
  guarded_connection* who;
  awake_clock::time_point until;
};

class guarding_doorman;

/// A descriptor that calls the doorman when it is readable.
class doorman_event : public network::event_handler {
public:
  using event_handler::event_handler;

  bool start(caf::intrusive_ptr<guarding_doorman> whom) {
    if (fd() < 0)
      return false;
    whom_ = std::move(whom);
    activate();
    return true;
  }

  void removed_from_loop(network::operation) override { auto last = std::move(whom_); }
  void graceful_shutdown() override { passivate(); }

protected:
  caf::intrusive_ptr<guarding_doorman> whom_;
};

/// Wakes the doorman: the thread of the connections has no clock but that of its sockets.
class alarm_clock final : public doorman_event {
public:
  explicit alarm_clock(network::default_multiplexer& backend)
    : doorman_event(backend, ::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {}

  void set(std::chrono::nanoseconds after) {
    auto left = std::max<int64_t>(after.count(), 1);
    itimerspec when{{}, {left / 1'000'000'000, left % 1'000'000'000}};
    ::timerfd_settime(fd(), 0, &when, nullptr);
  }

  void handle_event(network::operation what) override;
};

/// Tells the doorman that its desk has something to do. It has a descriptor of its own, which it closes.
class desk_watch final : public doorman_event {
public:
  desk_watch(network::default_multiplexer& backend, int desk)
    : doorman_event(backend, ::fcntl(desk, F_DUPFD_CLOEXEC, 0)) {}

  void handle_event(network::operation what) override;
};

class guarding_doorman final : public network::doorman_impl {
public:
  guarding_doorman(network::default_multiplexer& backend, int listening, const doorman_limits& limits,
                   std::unique_ptr<greeting_desk> desk)
    : doorman_impl(backend, listening), limits_(limits), alarm_(backend), desk_(std::move(desk)) {
    if (desk_)
      desk_watch_.emplace(backend, desk_->descriptor());
    if (limits_.strangers_max == 0)
      limits_.strangers_max = std::max<uint64_t>(descriptors_max() / 4, 64);
  }

  void launch() override {
    doorman_impl::launch();
    rings_ = alarm_.start(this);
    watches_ = desk_watch_ && desk_watch_->start(this);
    if (desk_ && !watches_)
      spdlog::error("no connection to port {} can be admitted: this process has too many open files (ulimit -n)",
                    port());
  }

  bool new_connection() override {
    if (detached())
      return false; // as CAF's own does
    open_socket made{acceptor_.accepted_socket()};
    if (!desk_)
      return add(made.release(), {}, nullptr);
    desk_->take(std::move(made));
    return true;
  }

  /// Takes those in whose greeting is complete.
  void run_desk() {
    for (auto& each : desk_->run())
      if (!detached())
        add(each.socket.release(), std::move(each.with), std::move(each.tls));
  }

  bool add(int fd, session with, tls_channel_ptr tls) {
    auto& backend = acceptor_.backend();
    auto scribe = caf::make_counted<guarded_connection>(backend, renumbered(fd), guarded_connection::side::accepted,
                                                        limits_.connection, log_, std::move(with), std::move(tls));
    auto known_as = std::make_shared<stranger>(stranger{scribe.get(), awake_clock::now() + limits_.greeting});
    scribe->when_known([known_as] { known_as->who = nullptr; });
    scribe->when_waiting([self = caf::intrusive_ptr<guarding_doorman>{this}] { self->set_alarm(); });
    strangers_.push_back(std::move(known_as));
    look(&backend);
    auto handle = scribe->hdl();
    parent()->add_scribe(std::move(scribe));
    return doorman::new_connection(&backend, handle);
  }

  /// Closes the connections of those that have not greeted in time, or are too many.
  void look(caf::execution_unit* context) {
    auto gone = [](auto& x) { return x->who == nullptr; };
    std::erase_if(strangers_, gone);
    while (!strangers_.empty()
           && (strangers_.size() > limits_.strangers_max || strangers_.front()->until <= awake_clock::now())) {
      auto oldest = std::move(strangers_.front());
      strangers_.pop_front();
      if (oldest->who != nullptr)
        oldest->who->close(context);
    }
    for (auto& x : std::deque{strangers_}) // one that is let in leaves the list later
      if (x->who != nullptr && x->who->waits())
        x->who->look_again(context);
    set_alarm();
  }

  void set_alarm() {
    constexpr std::chrono::nanoseconds next_look = std::chrono::milliseconds{10};
    if (!rings_ || strangers_.empty())
      return;
    auto waits = std::ranges::any_of(strangers_, [](auto& x) { return x->who != nullptr && x->who->waits(); });
    std::chrono::nanoseconds left = strangers_.front()->until - awake_clock::now();
    alarm_.set(waits ? std::min(left, next_look) : left);
  }

  void graceful_shutdown() override {
    stop();
    doorman_impl::graceful_shutdown();
  }

  void remove_from_loop() override {
    stop();
    doorman_impl::remove_from_loop();
  }

private:
  void stop() {
    if (std::exchange(rings_, false))
      alarm_.passivate();
    if (std::exchange(watches_, false))
      desk_watch_->passivate();
  }

  doorman_limits limits_;
  const std::shared_ptr<claim_log> log_ = std::make_shared<claim_log>();
  std::deque<std::shared_ptr<stranger>> strangers_; ///< The oldest first.
  alarm_clock alarm_;
  bool rings_ = false;
  std::unique_ptr<greeting_desk> desk_;
  std::optional<desk_watch> desk_watch_;
  bool watches_ = false;
};

void alarm_clock::handle_event(network::operation what) {
  uint64_t rung = 0;
  if (what != network::operation::read || ::read(fd(), &rung, sizeof rung) != sizeof rung || !whom_)
    return;
  auto alive = whom_;
  alive->look(&backend());
}

void desk_watch::handle_event(network::operation what) {
  if (what != network::operation::read || !whom_)
    return;
  auto alive = whom_;
  alive->run_desk();
}

} // namespace

caf::io::scribe_ptr make_connection(network::default_multiplexer& backend, int connected, session with,
                                    tls_channel_ptr tls) {
  static const auto log = std::make_shared<claim_log>();
  return caf::make_counted<guarded_connection>(backend, connected, guarded_connection::side::made, connection_limits{},
                                               log, std::move(with), std::move(tls));
}

caf::io::doorman_ptr make_doorman(network::default_multiplexer& backend, int listening, const doorman_limits& limits,
                                  std::unique_ptr<greeting_desk> desk) {
  return caf::make_counted<guarding_doorman>(backend, listening, limits, std::move(desk));
}

int renumbered(int fd) {
  static std::mutex guard;
  static int next = 0;
  std::scoped_lock lock{guard};
  auto lowest = static_cast<int>(std::min<uint64_t>(descriptors_max() / 2,
                                                    1024)); // the lower ones are for all other uses
  auto made = ::fcntl(fd, F_DUPFD_CLOEXEC, std::max(next, lowest));
  if (made < 0)
    made = ::fcntl(fd, F_DUPFD_CLOEXEC, lowest); // once around
  if (made < 0)
    return fd;
  next = made + 1;
  ::close(fd);
  return made;
}

} // namespace ringmaster
