#include "actors/hosts/connections.hpp"

#include "actors/calls/await_down.hpp"
#include "actors/hosts/connection_watch.hpp"
#include "actors/hosts/doorman.hpp"
#include "actors/hosts/open_connection.hpp"
#include "actors/hosts/process_trust.hpp"
#include "actors/links/socket_greeting.hpp"
#include "actors/scheduling/awake_clock.hpp"
#include "messages/errc.hpp"
#include "messages/try.hpp"
#include "messages/version.hpp"
#include "runtime/text/own_address.hpp"
#include "runtime/text/quantity_text.hpp"
#include "runtime/text/version_text.hpp"

#include <caf/io/basp_broker.hpp>
#include <caf/io/broker.hpp>
#include <caf/io/middleman.hpp>
#include <caf/io/middleman_actor_impl.hpp>
#include <caf/io/network/default_multiplexer.hpp>
#include <caf/scoped_actor.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fmt/format.h>
#include <memory>
#include <netdb.h>
#include <netinet/tcp.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <utility>

namespace ringmaster {

namespace {

using multiplexer = caf::io::network::default_multiplexer;

struct connector_options {
  std::chrono::milliseconds way{};
  doorman_limits limits = {};
  listener_kind whom = listener_kind::coordinator;  ///< That listens: the other end, or this process.
  awake_clock::time_point until = {};               ///< For the greeting of a connection that is made.
  std::shared_ptr<std::atomic<bool>> accepted = {}; ///< Set when the other host's kernel has accepted; may be null.
};

/// CAF's actor that connects and listens, with our sockets, over which both ends greet before CAF uses them.
class connector final : public caf::io::middleman_actor_impl {
public:
  connector(caf::actor_config& cfg, caf::actor protocol, const connector_options& options)
    : middleman_actor_impl(cfg, std::move(protocol)), options_(options) {}

protected:
  caf::expected<caf::io::scribe_ptr> connect(const std::string& host, uint16_t port) override {
    constexpr auto limit = std::chrono::seconds{3};
    const ringmaster::endpoint there{host, port}; // CAF has one of its own
    TRY(made, open_connection(there, limit, options_.whom));
    limit_way(made->descriptor);
    if (options_.accepted)
      *options_.accepted = true;
    const auto find_own = [&] { return process_trust::of(system()).for_connecting(there, options_.whom); };
    socket_greeting greeting{find_own, options_.whom, text_of(there), {without_brackets(host)}, control_tls_limits};
    TRY(known, greet(made->descriptor, std::move(greeting), [this]() -> caf::error {
          if (no_more_connecting::is_so())
            return no_more_connecting::error();
          return awake_clock::now() < options_.until ? caf::error{} : caf::make_error(caf::sec::request_timeout);
        }));
    return make_connection(backend(), renumbered(made->release()), std::move(known->with), std::move(known->tls));
  }

  caf::expected<caf::io::doorman_ptr> open(uint16_t port, const char* address, bool reuse) override {
    TRY(fd, caf::io::network::new_tcp_acceptor_impl(port, address, reuse));
    open_socket listening{*fd};
    limit_way(listening.descriptor); // those that it accepts have it from there
    const auto given = caf::io::network::local_port_of_fd(listening.descriptor);
    TRY(own, process_trust::of(system()).for_listening(options_.whom, given ? *given : port));
    TRY(desk, greeting_desk::make(std::move(*own), options_.whom, {}, control_tls_limits));
    return make_doorman(backend(), renumbered(listening.release()), options_.limits, std::move(*desk));
  }

private:
  void limit_way(int socket) {
    if (connection_watch::of(system()) != nullptr)
      return leave_limits_to_watch(socket, options_.way);
    const auto ms = static_cast<unsigned>(options_.way.count());         // 0 is the system's default, too
    ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms); // without it the way is lost later
  }
  multiplexer& backend() { return static_cast<multiplexer&>(system().middleman().backend()); }

  const connector_options options_;
};

/// On its own thread, so that a silent peer delays only this connection. Not hidden: the system's end waits for it
/// before CAF's connections end, whose broker would take what it says then, keep it, and with it the thread for ever.
caf::io::middleman_actor make_connector(caf::actor_system& system, const connector_options& options) {
  auto protocol = system.middleman().named_broker<caf::io::basp_broker>(caf::atom("BASP"));
  return system.spawn<connector, caf::detached>(protocol, options);
}

// CAF sends each process that connects the interface of the published actor, as texts. One more says our protocol: to
// processes that do not know it, it is one message that they never send.
constexpr std::string_view protocol_mark = "ringmaster protocol ";

uint32_t take_protocol(std::set<std::string>& signature) {
  for (auto& text : signature)
    if (text.starts_with(protocol_mark)) {
      uint32_t result = 0;
      std::from_chars(text.data() + protocol_mark.size(), text.data() + text.size(), result);
      signature.erase(text);
      return result;
    }
  return 0;
}

} // namespace

caf::error check(const published_actor& found, const std::string& where, const char* what, bool is_one) {
  auto is_ours = [](auto& text) { return text.find("ringmaster::") != std::string::npos; };
  const bool says = found.protocol != 0;
  if (found.handle && (says || std::ranges::any_of(found.signature, is_ours)))
    RETURN_ERROR(check_protocol(fmt::format("the {} at {}", what, where), found.protocol, "this process"));
  return is_one ? caf::none : invalid(fmt::format("{} answers, but it is no ringmaster {}", where, what));
}

namespace {

/// The peer does not answer. `accepted`: the other host's kernel has accepted the connection.
caf::error no_answer(const endpoint& there, const caf::error& problem, std::chrono::duration<double> taken,
                     bool accepted) {
  if (!accepted)
    return make_error(errc::unreachable, fmt::format("{} has not taken a connection in {:.1f} s: nothing came back; "
                                                     "does the host run, and does a firewall let the port through?",
                                                     text_of(there), taken.count()));
  if (problem == caf::sec::request_timeout || problem == caf::sec::connection_timeout)
    return make_error(errc::timed_out,
                      fmt::format("{} accepts connections, and has not answered in {:.1f} s: it is stopped, or is no "
                                  "process of ringmaster; look at the process that listens there",
                                  text_of(there), taken.count()));
  return make_error(errc::not_ringmaster,
                    fmt::format("{} accepts connections and does not answer as a process of ringmaster would: {}",
                                text_of(there), render(problem)));
}

} // namespace

caf::expected<published_actor> connect_to(caf::actor_system& system, const endpoint& there, caf::timespan limit,
                                          listener_kind whom, std::chrono::milliseconds way) {
  constexpr auto worth_a_word = std::chrono::seconds{1};
  const auto began = awake_clock::actor_now();
  const auto until = began + limit;
  const auto accepted = std::make_shared<std::atomic<bool>>(false);
  caf::scoped_actor self{system};
  for (auto told = false;;) {
    auto left = std::max<caf::timespan>(until - awake_clock::actor_now(), caf::timespan{0});
    auto connects = make_connector(
      system, {.way = way, .whom = whom, .until = awake_clock::now() + left, .accepted = accepted});
    caf::error problem;
    published_actor found;
    auto answer = self->request(connects, left, caf::connect_atom_v, there.host, there.port);
    while (!no_more_connecting::is_so() && !await_message(*self, no_more_connecting::look))
      if (!told && *accepted && awake_clock::actor_now() - began >= worth_a_word) {
        told = true;
        spdlog::info("waits for {}, which accepts connections and does not answer: the process there is still, or is "
                     "no process of ringmaster; for {} at most",
                     text_of(there), duration_text(limit));
      }
    if (self->mailbox().empty())
      problem = no_more_connecting::error();
    else
      answer.receive(
        [&](const caf::node_id&, const caf::strong_actor_ptr& handle, const std::set<std::string>& signature) {
          found = {handle, signature};
          found.protocol = take_protocol(found.signature);
        },
        [&](caf::error& x) { problem = std::move(x); });
    self->send_exit(connects, caf::exit_reason::kill);
    if (!problem)
      return found;
    if (code_of(problem) != errc::ok)
      return problem;
    // CAF gives up a peer that has not answered by its next heartbeat, however long that is, though it may only be
    // stopped.
    bool too_early = problem == caf::sec::connection_timeout && awake_clock::actor_now() < until;
    if (!too_early)
      return no_answer(there, problem, awake_clock::actor_now() - began, *accepted);
  }
}

namespace {

/// The addresses at which this host might listen, or the system's error number. An empty host: any address.
std::pair<int, std::shared_ptr<addrinfo>> addresses_to_listen_at(const std::string& host, uint16_t port) {
  addrinfo wanted{}, *found = nullptr;
  wanted.ai_family = host.empty() ? AF_INET : AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_PASSIVE;
  const auto unknown = ::getaddrinfo(host.empty() ? nullptr : host.c_str(), std::to_string(port).c_str(), &wanted,
                                     &found);
  return {unknown, unknown == 0 ? std::shared_ptr<addrinfo>{found, &::freeaddrinfo} : nullptr};
}

/// If an address cannot be listened at, CAF says only that the port cannot be opened, whatever the reason.
caf::error check_own(const std::string& host) {
  const auto [unknown, addresses] = addresses_to_listen_at(host, 0);
  if (unknown != 0)
    return invalid(
      fmt::format("cannot listen at the host \"{}\", which is unknown ({}): give an address of this host; {}", host,
                  ::gai_strerror(unknown), own_addresses_text()));
  for (auto* each = addresses.get(); each != nullptr; each = each->ai_next) {
    open_socket tried{::socket(each->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    if (tried.descriptor < 0 || ::bind(tried.descriptor, each->ai_addr, each->ai_addrlen) == 0
        || errno != EADDRNOTAVAIL)
      return caf::none; // whatever else is wrong, it is not the address
  }
  return invalid(fmt::format("cannot listen at {}, which is no address of this host; {}", host, own_addresses_text()));
}

/// Of a port that CAF cannot open, and does not say why: what trying once more says.
std::string why_not_open(const std::string& host, uint16_t port) {
  const auto found = addresses_to_listen_at(host, port).second;
  if (found == nullptr)
    return {};
  open_socket tried{::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  const int on = 1;
  if (tried.descriptor < 0 || ::setsockopt(tried.descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0)
    return std::strerror(errno);
  if (::bind(tried.descriptor, found->ai_addr, found->ai_addrlen) == 0)
    return {};
  const auto problem = errno;
  return fmt::format("{}{}", std::strerror(problem),
                     problem == EADDRINUSE ? ": another process has the port; port 0 is any free one"
                     : problem == EACCES   ? ": ports below 1024 are the administrator's; port 0 is any free one"
                                           : "");
}

} // namespace

caf::actor make_silence_watch(caf::actor_system& system) {
  if (!system.has_middleman())
    return nullptr;
  // A broker, for all of them are of one thread: so it may look at what CAF's own one knows.
  auto watch = [](caf::io::broker* self, const caf::actor& protocol, caf::timespan overdue) -> caf::behavior {
    return {[=](const caf::node_id& whom) -> uint64_t {
      auto& known = static_cast<caf::io::basp_broker&>(*caf::actor_cast<caf::abstract_actor*>(protocol));
      const auto way = known.instance.tbl().lookup_direct(whom);
      const auto its = way ? known.ctx.find(*way) : known.ctx.end();
      if (its == known.ctx.end())
        return 0;
      const auto* knows_more = connection_watch::of(self->system());
      const auto heard = knows_more != nullptr ? knows_more->last_heard(its->second) : its->second.last_seen;
      const caf::timespan length = self->clock().now() - heard;
      return overdue.count() > 0 && length >= overdue ? static_cast<uint64_t>(length.count()) : 0;
    }};
  };
  auto protocol = system.middleman().named_broker<caf::io::basp_broker>(caf::atom("BASP"));
  const auto overdue = 2 * caf::get_or(system.config(), "middleman.heartbeat-interval", caf::timespan{0});
  return system.middleman().spawn_broker<caf::hidden>(watch, protocol, overdue); // without arguments CAF reads a null
}

void raise_descriptor_limit() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == files.rlim_max)
    return;
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

caf::expected<uint16_t> listen_for(caf::actor_system& system, const caf::strong_actor_ptr& whom,
                                   std::set<std::string> signature, const std::string& host, uint16_t port,
                                   listener_kind as, std::chrono::milliseconds way,
                                   std::chrono::milliseconds greeting) {
  if (!host.empty())
    RETURN_ERROR(check_own(host));
  raise_descriptor_limit();
  auto listens = make_connector(system, {.way = way, .limits = {.greeting = greeting}, .whom = as});
  if (std::ranges::none_of(signature, [](auto& text) { return text.starts_with(protocol_mark); })) // but in a test
    signature.insert(fmt::format("{}{}", protocol_mark, protocol_version));
  caf::scoped_actor self{system};
  caf::expected<uint16_t> result = uint16_t{0};
  constexpr auto limit = std::chrono::seconds{10}; // our own thread has no other request
  self->request(listens, limit, caf::publish_atom_v, port, whom, std::move(signature), host, true)
    .receive([&](uint16_t given) { result = given; },
             [&](const caf::error& problem) {
               if (problem == caf::sec::request_timeout) {
                 result = make_error(errc::timed_out, "CAF's own thread for connections did not answer within 10 s");
                 return;
               }
               if (code_of(problem) != errc::ok) {
                 result = problem;
                 return;
               }
               const auto why = why_not_open(host, port);
               result = make_error(errc::io_error, why.empty() ? render(problem) : why);
             });
  self->send_exit(listens, caf::exit_reason::kill);
  return result;
}

} // namespace ringmaster
