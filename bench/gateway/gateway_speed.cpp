// What the gateway costs: the time of a call over gRPC beside that of the same call between actors, and the speed of
// copies. Against a cluster and its gateway: gateway_speed GATEWAY --join COORDINATOR, each HOST:PORT.
#include "actors/configuration/configuration.hpp"
#include "client/client.hpp"
#include "client/cluster.hpp"
#include "messages/errc.hpp"

#include <caf/actor_system.hpp>
#include <course.pb.h>
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/client_unary_call.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace ringmaster;

[[noreturn]] void fail(const std::string& why) {
  fmt::print(stderr, "gateway_speed: {}\n", why);
  std::exit(1);
}

/// Median of the times of a call, in microseconds.
double median_us(size_t calls, const std::function<void()>& call) {
  using clock = std::chrono::steady_clock;
  std::vector<double> times;
  for (size_t i = 0; i < calls; ++i) {
    const auto began = clock::now();
    call();
    times.push_back(std::chrono::duration<double, std::micro>{clock::now() - began}.count());
  }
  std::ranges::nth_element(times, times.begin() + static_cast<ptrdiff_t>(calls / 2));
  return times[calls / 2];
}

class grpc_client {
public:
  explicit grpc_client(const std::string& where) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    channel_ = grpc::CreateCustomChannel(where, grpc::InsecureChannelCredentials(), arguments);
  }

  template <class Response, class Request>
  Response call(const char* method, const Request& request) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds{30});
    Response response;
    const auto status = grpc::internal::BlockingUnaryCall(
      channel_.get(), grpc::internal::RpcMethod(method, nullptr, grpc::internal::RpcMethod::NORMAL_RPC), &context,
      request, &response);
    if (!status.ok())
      fail(fmt::format("{}: {}", method, status.error_message()));
    return response;
  }

private:
  std::shared_ptr<grpc::Channel> channel_;
};

} // namespace

int main(int argc, char** argv) {
  configuration settings;
  if (argc != 4 || std::string{argv[2]} != "--join")
    fail("usage: gateway_speed GATEWAY --join COORDINATOR");
  if (auto problem = settings.read({"--log.level=off"}, std::nullopt))
    fail(render(problem));
  caf::actor_system system{settings};
  auto coordinator = connect(system, argv[3], std::chrono::seconds{20});
  if (!coordinator)
    fail(render(coordinator.error()));
  client user{system, *coordinator};
  grpc_client remote{argv[1]};
  constexpr size_t calls = 3000, copies = 20, mib = 16, bytes = mib << 20;

  course::CommInitRequest init;
  init.set_numdevices(1);
  const auto made = remote.call<course::CommInitResponse>("/gpu_sim.GPUCoordinator/CommInit", init);
  course::GetCommStatusRequest ask;
  ask.set_commid(made.commid());
  const communicator_id communicator{made.commid()};
  const auto actor_us = median_us(calls, [&] {
    if (auto status = user.members(communicator); !status)
      fail(render(status.error()));
  });
  const auto grpc_us = median_us(calls, [&] {
    remote.call<course::GetCommStatusResponse>("/gpu_sim.GPUCoordinator/GetCommStatus", ask);
  });
  fmt::print("GetCommStatus: {:.0f} us between actors, {:.0f} us over gRPC, {:.0f} us more\n", actor_us, grpc_us,
             grpc_us - actor_us);

  course::MemcpyRequest in, out;
  in.mutable_hosttodevice()->set_hostsrcdata(std::string(bytes, 'x'));
  *in.mutable_hosttodevice()->mutable_dstdeviceid() = made.devices(0).deviceid();
  *in.mutable_hosttodevice()->mutable_dstmemaddr() = made.devices(0).minmemaddr();
  *out.mutable_devicetohost()->mutable_srcdeviceid() = made.devices(0).deviceid();
  *out.mutable_devicetohost()->mutable_srcmemaddr() = made.devices(0).minmemaddr();
  out.mutable_devicetohost()->set_numbytes(bytes);
  auto speed = [&](const course::MemcpyRequest& request) {
    const auto us = median_us(copies,
                              [&] { remote.call<course::MemcpyResponse>("/gpu_sim.GPUCoordinator/Memcpy", request); });
    return static_cast<double>(bytes) / us;
  };
  const auto to_device = speed(in), to_host = speed(out);
  const device_id device{made.devices(0).deviceid().value()};
  const auto address = made.devices(0).minmemaddr().value();
  const auto block = byte_block::of(std::vector<char>(bytes, 'y'));
  const auto actor_in = median_us(copies, [&] { (void)user.copy_to_device(device, address, block); });
  const auto actor_out = median_us(copies, [&] { (void)user.copy_to_host(device, address, bytes); });
  fmt::print("Memcpy of {} MiB: to the device {:.0f} MB/s ({:.0f} between actors), to the host {:.0f} MB/s ({:.0f})\n",
             mib, to_device, static_cast<double>(bytes) / actor_in, to_host, static_cast<double>(bytes) / actor_out);
}
