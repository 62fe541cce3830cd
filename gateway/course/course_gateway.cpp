#include "gateway/course/course_gateway.hpp"

#include "gateway/course/course_desk.hpp"
#include "gateway/course/course_service.hpp"
#include "messages/errc.hpp"

#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>

#include <chrono>

namespace ringmaster::gateway {

namespace {

// Limits of a connection.
constexpr int header_bytes_max = 16 << 10;
constexpr int streams_max = 256;                 ///< Calls of one connection at a time.
constexpr int message_overhead_bytes = 64 << 10; ///< Beside the data.
constexpr int idle_ms = 30 * 60 * 1000;          ///< Then an unused connection is closed.
constexpr int keepalive_ms = 60 * 1000, keepalive_timeout_ms = 20 * 1000;
constexpr int client_pings_ms = 5 * 1000; ///< A client that pings more often loses its connection.
// Of large messages: by default a message arrives in pieces of 8 KiB, in frames of 16 KiB.
constexpr int read_bytes = 256 << 10, frame_bytes = 1 << 20;
/// Data under way at a listener, in messages of full size.
constexpr uint64_t full_messages_max = 4;

void set_limits(grpc::ServerBuilder& builder, const dialect& form, const grpc::ResourceQuota& quota) {
  builder.SetMaxReceiveMessageSize(static_cast<int>(form.message_bytes_max) + message_overhead_bytes);
  builder.SetMaxSendMessageSize(-1);
  builder.SetResourceQuota(quota);
  builder.AddChannelArgument(GRPC_ARG_TCP_READ_CHUNK_SIZE, read_bytes);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, frame_bytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, header_bytes_max);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, streams_max);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, idle_ms);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, keepalive_ms);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, keepalive_timeout_ms);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, client_pings_ms);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0); // two gateways at one port would share its clients
}

std::shared_ptr<grpc::ServerCredentials> credentials_of(const grpc_certificates& x) {
  if (x.certificate.empty())
    return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions options{x.clients.empty()
                                              ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                                              : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY};
  options.pem_key_cert_pairs.push_back({x.key, x.certificate});
  options.pem_root_certs = x.clients;
  return grpc::SslServerCredentials(options);
}

} // namespace

/// The gRPC servers of one listener, and the actor that serves its calls.
class course_gateway::listener {
public:
  listener(caf::actor_system& system, const coordinator_actor& coordinator, listener_options options,
           const grpc_certificates& certificates, const caller_rules& callers)
    : system_(system), options_(std::move(options)), credentials_(credentials_of(certificates)), callers_(callers),
      registry_(std::make_shared<call_registry>(options_.form.calls_max,
                                                full_messages_max * options_.form.message_bytes_max)),
      desk_(system.spawn(course_desk, course_desk_options{coordinator, options_})) {}
  listener(const listener&) = delete;
  listener& operator=(const listener&) = delete;

  ~listener() {
    registry_->close();
    constexpr auto grace = std::chrono::seconds{1};
    for (auto& x : servers_)
      x->Shutdown(std::chrono::system_clock::now() + grace);
    servers_.clear();
    caf::scoped_actor self{system_};
    self->send_exit(desk_, caf::exit_reason::user_shutdown);
    self->wait_for(desk_);
  }

  /// Errors: io_error.
  caf::error listen() {
    grpc::ResourceQuota quota{"ringmaster-gateway"};
    quota.Resize(2 * full_messages_max * options_.form.message_bytes_max); // then connections are closed
    if (auto problem = listen_at(options_.address, std::nullopt, quota))
      return problem;
    device_ports ports;
    for (size_t i = 0; i < options_.devices.size(); ++i) {
      if (auto problem = listen_at(options_.devices[i], i, quota))
        return problem;
      ports.ports.push_back(options_.devices[i].port);
    }
    caf::anon_send(desk_, std::move(ports));
    return caf::none;
  }

  const listener_options& options() const noexcept { return options_; }

private:
  caf::error listen_at(endpoint& where, std::optional<size_t> place, const grpc::ResourceQuota& quota) {
    services_.push_back(std::make_unique<course_service>(registry_, place, [desk = desk_](const call_pointer& call) {
      caf::anon_send(desk, call);
    }));
    services_.back()->admit(callers_, where); // with port 0 no one knows it yet
    grpc::ServerBuilder builder;
    set_limits(builder, options_.form, quota);
    int port = 0;
    builder.AddListeningPort(text_of(where), credentials_, &port);
    builder.RegisterCallbackGenericService(services_.back().get());
    auto server = builder.BuildAndStart();
    if (!server || port == 0)
      return make_error(errc::io_error, fmt::format("cannot listen for gRPC at {}: the port may be in use, or the "
                                                    "address may not be one of this host's",
                                                    text_of(where)));
    where.port = static_cast<uint16_t>(port);
    services_.back()->admit(callers_, where);
    if (auto* health = server->GetHealthCheckService())
      for (auto name : {"gpu_sim.GPUCoordinator", "gpu_sim.GPUDevice"})
        health->SetServingStatus(name, true);
    servers_.push_back(std::move(server));
    return caf::none;
  }

  caf::actor_system& system_;
  listener_options options_;
  std::shared_ptr<grpc::ServerCredentials> credentials_;
  const caller_rules& callers_;
  std::shared_ptr<call_registry> registry_;
  course_desk_actor desk_;
  std::vector<std::unique_ptr<course_service>> services_;
  std::vector<std::unique_ptr<grpc::Server>> servers_; ///< They use the services.
};

course_gateway::course_gateway(caller_rules callers) : callers_(std::move(callers)) {}
course_gateway::~course_gateway() = default;

caf::expected<std::unique_ptr<course_gateway>> course_gateway::start(
  caf::actor_system& system, const coordinator_actor& coordinator, std::vector<listener_options> listeners,
  const grpc_certificates& certificates, caller_rules callers) {
  grpc::EnableDefaultHealthCheckService(true);
  callers.has_certificates = !certificates.clients.empty();
  std::unique_ptr<course_gateway> result{new course_gateway{std::move(callers)}};
  for (auto& x : listeners) {
    auto all = x.devices;
    all.push_back(x.address);
    for (auto& address : all)
      if (auto problem = check_reach(result->callers_, !certificates.certificate.empty(), address.host))
        return with_context(fmt::format("gRPC {}", x.name), problem);
    result->listeners_.push_back(
      std::make_unique<listener>(system, coordinator, std::move(x), certificates, result->callers_));
    if (auto problem = result->listeners_.back()->listen())
      return problem;
  }
  return result;
}

std::vector<listener_options> course_gateway::listeners() const {
  std::vector<listener_options> result;
  for (auto& x : listeners_)
    result.push_back(x->options());
  return result;
}

std::vector<std::string> course_gateway::summary() const {
  std::vector<std::string> result;
  for (auto& x : listeners_) {
    auto line = fmt::format("gRPC {} at {}", x->options().name, text_of(x->options().address));
    for (auto& device : x->options().devices)
      line += fmt::format("{} {}", &device == &x->options().devices.front() ? ", devices at" : ",", text_of(device));
    result.push_back(std::move(line));
  }
  return result;
}

} // namespace ringmaster::gateway
