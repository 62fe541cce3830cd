#include "actors/links/link_hub.hpp"

#include "actors/links/link_peer.hpp"
#include "actors/links/link_sender.hpp"
#include "actors/scheduling/awake_clock.hpp"
#include "messages/try.hpp"
#include "runtime/coordination/random_id.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <list>
#include <spdlog/spdlog.h>
#include <thread>

namespace ringmaster {

namespace {

/// Signals go to threads that know what to do with them, but for those that tell a thread of its own faults.
void leave_signals_to_others() {
  sigset_t others;
  ::sigfillset(&others);
  for (auto own : {SIGBUS, SIGSEGV, SIGFPE, SIGILL})
    ::sigdelset(&others, own);
  ::pthread_sigmask(SIG_SETMASK, &others, nullptr);
}

} // namespace

/// All that the thread alone touches, and the orders to it.
class link_hub::io_thread {
public:
  using time_point = io_loop::time_point;

  explicit io_thread(link_options opts) : options(std::move(opts)) {
    place.process = random_id();
    if (options.trust->tls)
      place.name = options.trust->tls->host();
  }

  ~io_thread() {
    {
      std::lock_guard guard{mutex_};
      ends_ = true;
    }
    if (loop)
      loop->wake();
    if (thread_.joinable())
      thread_.join();
    for (auto& x : started_)
      x.what->end(link_fetch::outcome::unreachable,
                  make_error(errc::unreachable, "this process has closed its bulk connections"));
  }

  caf::error listen(const std::string& address) {
    TRY(socket, listen_at({without_brackets(address), options.port}));
    TRY(desk, greeting_desk::make(options.trust, listener_kind::bulk_link, options.strangers));
    auto at = own_end_text(socket->descriptor);
    place.endpoints.push_back(at);
    listeners_.push_back(std::make_unique<listener>(*this, std::move(*socket), std::move(*desk)));
    return caf::none;
  }

  void run() {
    thread_ = std::thread{[this] {
      leave_signals_to_others();
      ::pthread_setname_np(::pthread_self(), "links");
      while (!ended()) {
        take_orders();
        loop->turn(next_due());
        on_time(awake_clock::actor_now());
      }
      peers_.clear();
    }};
  }

  void start(const link_place& from, std::shared_ptr<link_fetch> what) {
    {
      std::lock_guard guard{mutex_};
      started_.push_back({from, std::move(what)});
    }
    loop->wake();
  }

  void cancel(std::shared_ptr<link_fetch> what) {
    {
      std::lock_guard guard{mutex_};
      cancelled_.push_back(std::move(what));
    }
    loop->wake();
  }

  void doubt(uint64_t process) {
    {
      std::lock_guard guard{mutex_};
      doubted_.push_back(process);
    }
    loop->wake();
  }

  const link_options options;
  link_place place;
  link_counts counts;
  std::shared_ptr<link_exposures> exposures = std::make_shared<link_exposures>();
  std::unique_ptr<io_loop> loop;

private:
  struct order {
    link_place from;
    std::shared_ptr<link_fetch> what;
  };

  /// The greetings of a listener's connections.
  class greetings : public io_handler {
  public:
    greetings(io_thread& io, std::unique_ptr<greeting_desk> desk) : io_(io), desk_(std::move(desk)) {
      desk_->when_refused([&io](greeting_refusal) { ++io.counts.strangers_refused; });
      io.loop->watch(desk_->descriptor(), EPOLLIN, *this);
    }

    void take(open_socket made) { desk_->take(std::move(made)); }
    void on_ready(uint32_t) override {
      for (auto& each : desk_->run())
        io_.serve(std::move(each));
    }

  private:
    io_thread& io_;
    std::unique_ptr<greeting_desk> desk_;
  };

  class listener : public io_handler {
  public:
    listener(io_thread& io, open_socket socket, std::unique_ptr<greeting_desk> desk)
      : io_(io), greetings_(io, std::move(desk)), socket_(std::move(socket)),
        number_(io.loop->watch(socket_.descriptor, EPOLLIN, *this)) {}

    void on_ready(uint32_t) override {
      open_socket made{::accept4(socket_.descriptor, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)};
      if (made.descriptor >= 0)
        greetings_.take(std::move(made));
      else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
        pause();
    }

    void on_time(time_point now) {
      if (now < paused_until_)
        return;
      paused_until_ = time_point::max();
      io_.loop->change(socket_.descriptor, number_, EPOLLIN);
    }
    time_point due() const { return paused_until_; }

  private:
    /// A peer that waits there would wake us without end.
    void pause() {
      spdlog::warn("no bulk connection can be taken for a second: {}", std::strerror(errno));
      paused_until_ = awake_clock::actor_now() + std::chrono::seconds{1};
      io_.loop->change(socket_.descriptor, number_, 0);
    }

    io_thread& io_;
    greetings greetings_;
    open_socket socket_;
    uint64_t number_;
    time_point paused_until_ = time_point::max();
  };

  bool ended() {
    std::lock_guard guard{mutex_};
    return ends_;
  }

  void serve(greeting_desk::admitted made) {
    prepare_bulk_socket(made.socket.descriptor);
    senders_.push_back(std::make_unique<link_sender>(*loop, std::move(made), *exposures, place.process, counts));
  }

  void take_orders() {
    std::vector<order> started;
    std::vector<std::shared_ptr<link_fetch>> cancelled;
    std::vector<uint64_t> doubted;
    {
      std::lock_guard guard{mutex_};
      std::swap(started, started_);
      std::swap(cancelled, cancelled_);
      std::swap(doubted, doubted_);
    }
    for (auto& x : doubted) {
      doubtful_[x] = awake_clock::actor_now() + doubts_last;
      if (auto peer = peers_.find(x); peer != peers_.end())
        peer->second->doubt();
    }
    for (auto& x : started) {
      auto& peer = peers_[x.from.process];
      if (!peer)
        peer = make_peer(x.from);
      peer->fetch(x.what);
    }
    for (auto& x : cancelled)
      for (auto& peer : peers_)
        peer.second->cancel(*x);
  }

  std::unique_ptr<link_peer> make_peer(const link_place& there) {
    auto result = std::make_unique<link_peer>(*loop, options, counts, there);
    std::erase_if(doubtful_, [](auto& x) { return x.second < awake_clock::actor_now(); });
    if (doubtful_.contains(there.process))
      result->doubt();
    return result;
  }

  time_point next_due() const {
    auto result = time_point::max();
    for (auto& x : peers_)
      result = std::min(result, x.second->due());
    for (auto& x : senders_)
      result = std::min(result, x->due());
    for (auto& x : listeners_)
      result = std::min(result, x->due());
    return std::min(result, awake_clock::actor_now() + std::chrono::minutes{1});
  }

  void on_time(time_point now) {
    for (auto& x : peers_)
      x.second->on_time(now);
    for (auto& x : senders_)
      x->on_time(now);
    for (auto& x : listeners_)
      x->on_time(now);
    std::erase_if(senders_, [](auto& x) { return x->closed(); });
    std::erase_if(peers_, [&](auto& x) { return x.second->forgettable(now); });
  }

  std::vector<std::unique_ptr<listener>> listeners_;
  std::list<std::unique_ptr<link_sender>> senders_;
  std::map<uint64_t, std::unique_ptr<link_peer>> peers_;
  static constexpr std::chrono::minutes doubts_last{1};
  std::map<uint64_t, time_point> doubtful_; ///< Processes, and until when: also those that no fetch has asked for yet.
  std::mutex mutex_;                        ///< For what stands below.
  std::vector<order> started_;
  std::vector<std::shared_ptr<link_fetch>> cancelled_;
  std::vector<uint64_t> doubted_;
  bool ends_ = false;
  std::thread thread_;
};

caf::expected<std::shared_ptr<link_hub>> link_hub::start(const link_options& options) {
  auto io = std::make_unique<io_thread>(options);
  TRY(loop, io_loop::make());
  io->loop = std::move(*loop);
  auto addresses = options.addresses;
  if (std::erase_if(addresses, [](auto& x) { return x == "all" || is_any_address(without_brackets(x)); }) > 0)
    for (auto& x : addresses_of_host())
      addresses.push_back(x);
  if (addresses.empty())
    return invalid("bulk connections need an address: link.addresses names none that is up");
  for (auto& x : addresses)
    RETURN_ERROR(io->listen(x));
  io->run();
  return std::shared_ptr<link_hub>{new link_hub{std::move(io)}};
}

link_hub::link_hub(std::unique_ptr<io_thread> io) : io_(std::move(io)) {}

link_hub::~link_hub() {
  auto& x = io_->counts;
  if (x.connections_made > 0 || x.bytes_sent > 0)
    spdlog::info("bulk connections: {} bytes came and {} went; {} connections were made and {} broke; {} frames came "
                 "late and were dropped, {} were damaged",
                 x.bytes_received.load(), x.bytes_sent.load(), x.connections_made.load(), x.connections_lost.load(),
                 x.late_frames.load(), x.damaged_frames.load());
}

const link_place& link_hub::place() const {
  return io_->place;
}

const link_counts& link_hub::counts() const {
  return io_->counts;
}

std::shared_ptr<link_exposure> link_hub::expose(const transfer_key& key, const device_window& window) {
  return std::make_shared<link_exposure>(io_->exposures, key, window);
}

std::shared_ptr<link_fetch> link_hub::fetch(const link_place& from, const transfer_key& key, device_id device,
                                            const block_sink& sink, uint64_t bytes, std::function<void()> told) {
  auto result = std::make_shared<link_fetch>(key, device, sink, bytes, std::move(told));
  io_->start(from, result);
  return result;
}

void link_hub::doubt(uint64_t process) {
  io_->doubt(process);
}

void link_hub::revoke(const std::shared_ptr<link_fetch>& what) {
  what->revoke();
  if (what->running())
    io_->cancel(what);
}

} // namespace ringmaster
