#include "gateway/gateway_command.hpp"

#include "actors/calls/await_down.hpp"
#include "client/cluster.hpp"
#include "gateway/course/course_gateway.hpp"
#include "gateway/http/http_gateway.hpp"
#include "gateway/http/server/tls_context.hpp"
#include "gateway/http_command_options.hpp"
#include "messages/errc.hpp"
#include "runtime/logging/log.hpp"
#include "tools/clients/cluster_connection.hpp"
#include "tools/console/ending_signals.hpp"
#include "tools/console/ready_file.hpp"
#include "tools/options/configured_call.hpp"

#include <caf/actor_system.hpp>
#include <caf/scoped_actor.hpp>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <spdlog/spdlog.h>
#include <sstream>

namespace ringmaster::gateway {

namespace {

constexpr auto usual_grpc = "127.0.0.1:50051";

/// Runs until a signal arrives. Errors: the coordinator has exited.
caf::expected<int> run_until_ended(caf::actor_system& system, const coordinator_actor& coordinator) {
  constexpr auto look_every = std::chrono::milliseconds{250}; // an idle process should rarely wake
  caf::scoped_actor self{system};
  self->monitor(coordinator);
  for (;;) {
    if (auto down = await_down(*self, look_every))
      return with_context("the coordinator", make_error(errc::unreachable, render(down->reason)));
    if (auto signal = ending_signal()) {
      spdlog::info("ends on signal {}", strsignal(signal));
      return exit_ok;
    }
  }
}

class gateway_call final : public configured_call {
  void declare_options(option_table& table) override {
    table.about("Serves a cluster to clients in other languages: the course protocol over gRPC, and HTTP. It is a "
                "client of the cluster in a process of its own. Exits on SIGTERM or SIGINT. See docs/GATEWAY.md.");
    join_options(table);
    table.text("--grpc", grpc_)
      .says("FILE|HOST:PORT", "a file with listeners and dialects; or where to listen for the lab's form of the "
                              "protocol (port 0: any free port)")
      .otherwise(usual_grpc)
      .offers_files();
    table.file("--grpc-certificate", grpc_certificate_)
      .says("FILE", "gRPC with TLS, and this certificate chain, in PEM")
      .otherwise("gRPC without TLS");
    table.file("--grpc-key", grpc_key_).says("FILE", "the certificate's key, in PEM");
    table.file("--grpc-clients", grpc_clients_)
      .says("FILE", "gRPC clients need a certificate that the authority in this file has signed, in PEM")
      .otherwise("they need none");
    table.file("--grpc-token", grpc_token_)
      .says("FILE", "gRPC calls need the token in its first line: metadata \"authorization: Bearer TOKEN\"")
      .otherwise("without --grpc-clients this user's processes on this host may call");
    table.flag("--open-grpc", open_grpc_).says("every process that can connect may call over gRPC");
    add_http_options(table, http_, http_options_);
    table.file("--ready-file", ready_file_)
      .says("F", "a file that is written when all addresses are listened at; it has a line for each, as the log has");
    table.closing("Without --join and RINGMASTER_COORDINATOR the cluster is one in this process.");
    table.add_example("ringmaster-gateway --join 127.0.0.1:7077", "gRPC clients connect to 127.0.0.1:50051");
  }

  caf::error check() override {
    auto listeners = listeners_of(grpc_.empty() ? usual_grpc : grpc_);
    if (!listeners)
      return with_context("--grpc", listeners.error());
    listeners_ = std::move(*listeners);
    if (grpc_certificate_.empty() != grpc_key_.empty() || (grpc_certificate_.empty() && !grpc_clients_.empty()))
      return invalid("gRPC with TLS needs both --grpc-certificate and --grpc-key");
    return check_http_options(http_, http_options_);
  }

  /// gRPC itself does not say what is wrong with a file.
  caf::error read_certificates() {
    if (grpc_certificate_.empty())
      return caf::none;
    // gRPC accepts TLS 1.2 as well, and has no setting for that but the suites of TLS 1.2. These need a key that no one
    // has, so TLS 1.3 remains.
    ::setenv("GRPC_SSL_CIPHER_SUITES", "PSK-AES128-GCM-SHA256", 1);
    auto usable = open_tls(grpc_certificate_, grpc_key_, grpc_clients_);
    if (!usable)
      return with_context("gRPC", usable.error());
    const auto text = [](const std::string& file) {
      std::ostringstream result;
      if (!file.empty())
        result << std::ifstream{file}.rdbuf();
      return result.str();
    };
    certificates_ = {text(grpc_certificate_), text(grpc_key_), text(grpc_clients_)};
    return caf::none;
  }

  caf::expected<caller_rules> read_callers() const {
    caller_rules result;
    result.is_open = open_grpc_ || cfg_.values().trust.insecure;
    if (grpc_token_.empty())
      return result;
    auto token = access_token::read(grpc_token_);
    if (!token)
      return std::move(token.error());
    result.token = std::move(*token);
    return result;
  }

  caf::expected<int> run(const console& to) override {
    if (auto problem = read_certificates())
      return problem;
    auto callers = read_callers();
    if (!callers)
      return with_context("gRPC", callers.error());
    start_log(cfg_.values());
    block_ending_signals();
    caf::actor_system system{cfg_};
    auto where = open_cluster("ringmaster-gateway", system, cfg_.values(), to.err);
    if (!where)
      return std::move(where.error());
    auto& coordinator = (*where)->coordinator();
    auto course = course_gateway::start(system, coordinator, std::move(listeners_), certificates_, std::move(*callers));
    if (!course)
      return std::move(course.error());
    std::string addresses;
    auto report = [&](const std::string& line) {
      spdlog::info("{}", line);
      addresses += line + '\n';
    };
    for (auto& line : (*course)->summary())
      report(line);
    std::unique_ptr<http_gateway> http;
    if (!http_.empty()) {
      http_options_.coordinator = coordinator_elsewhere(cfg_.values()); // empty: in this process
      auto started = http_gateway::start(system, coordinator, http_options_);
      if (!started)
        return std::move(started.error());
      http = std::move(*started);
      report(http->summary());
    }
    if (auto problem = ready_file_.empty() ? caf::error{} : write_ready_file(ready_file_, addresses))
      return problem;
    return run_until_ended(system, coordinator);
  }

  std::string grpc_, http_, ready_file_;
  std::string grpc_certificate_, grpc_key_, grpc_clients_, grpc_token_;
  bool open_grpc_ = false;
  grpc_certificates certificates_;
  std::vector<listener_options> listeners_;
  http_options http_options_;
};

} // namespace

tool_command gateway_command() {
  auto result = tool_command::of<gateway_call>("ringmaster-gateway",
                                               "serves a cluster over gRPC and HTTP to clients in other languages");
  result.program = "";
  return result;
}

} // namespace ringmaster::gateway
