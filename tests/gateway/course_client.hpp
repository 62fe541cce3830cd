#pragma once

#include "runtime/text/endpoint.hpp"
#include <course.pb.h>

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <chrono>
#include <cstring>
#include <deque>
#include <doctest/doctest.h>
#include <future>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace ringmaster::test {

/// The bytes of numbers, as Memcpy carries them.
template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}
template <class T>
std::vector<T> numbers_in(const std::string& bytes) {
  std::vector<T> result(bytes.size() / sizeof(T));
  std::memcpy(result.data(), bytes.data(), result.size() * sizeof(T));
  return result;
}

/// A client of the course protocol over a channel of its own. Its calls wait for their answers.
class course_client {
public:
  /// What a call has come to.
  template <class Response>
  struct outcome {
    grpc::Status status;
    Response value;
    std::string code; ///< Of the trailing metadata.

    bool ok() const { return status.ok(); }
    grpc::StatusCode status_code() const { return status.error_code(); }
    /// The answer of a call that must succeed.
    const Response& answer() const {
      REQUIRE_MESSAGE(status.ok(), status.error_message());
      return value;
    }
  };
  using metadata = std::map<std::string, std::string>;

  /// `receive_bytes_max`: of a message to the client; -1: no limit.
  explicit course_client(
    const endpoint& where, int receive_bytes_max = -1,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials = grpc::InsecureChannelCredentials())
    : channel_(grpc::CreateCustomChannel(text_of(where), credentials, arguments(receive_bytes_max))) {}

  /// `method`: "GPUCoordinator/CommInit".
  template <class Response, class Request>
  outcome<Response> call(const std::string& method, const Request& request,
                         std::chrono::milliseconds limit = usual_limit, const metadata& with = {}) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + limit);
    for (auto& [name, value] : with)
      context.AddMetadata(name, value);
    outcome<Response> result;
    std::promise<void> done;
    grpc::TemplatedGenericStub<Request, Response>{channel_}.UnaryCall(&context, "/gpu_sim." + method, {}, &request,
                                                                      &result.value, [&](grpc::Status status) {
                                                                        result.status = std::move(status);
                                                                        done.set_value();
                                                                      });
    done.get_future().wait();
    const auto& trailing = context.GetServerTrailingMetadata();
    if (auto code = trailing.find("ringmaster-code"); code != trailing.end())
      result.code.assign(code->second.data(), code->second.size());
    return result;
  }

  /// A StreamSend of these chunks.
  outcome<course::StreamSendResponse> stream_send(std::deque<course::DataChunk> chunks, const metadata& with = {}) {
    return stream_send_of(std::move(chunks), with);
  }
  /// The same of one chunk that is written already.
  outcome<course::StreamSendResponse> stream_send_bytes(const grpc::ByteBuffer& chunk) {
    return stream_send_of(std::deque{chunk}, {});
  }

  // -- calls that must succeed --

  course::CommInitResponse comm_init(uint32_t devices) {
    course::CommInitRequest request;
    request.set_numdevices(devices);
    return call<course::CommInitResponse>("GPUCoordinator/CommInit", request).answer();
  }

  template <class T>
  void copy_to_device(uint64_t device, uint64_t address, const std::vector<T>& values) {
    CHECK(call<course::MemcpyResponse>("GPUCoordinator/Memcpy", to_device(device, address, bytes_of(values)))
            .answer()
            .hosttodevice()
            .success());
  }
  template <class T>
  std::vector<T> copy_to_host(uint64_t device, uint64_t address, size_t count) {
    auto request = to_host(device, address, count * sizeof(T));
    return numbers_in<T>(
      call<course::MemcpyResponse>("GPUCoordinator/Memcpy", request).answer().devicetohost().dstdata());
  }

  /// Number of the status once it is not IN_PROGRESS, whose number is `in_progress`.
  int poll_status(uint64_t communicator, int in_progress = 0) {
    course::GetCommStatusRequest request;
    request.set_commid(communicator);
    for (;;) {
      auto status = call<course::GetCommStatusResponse>("GPUCoordinator/GetCommStatus", request).answer().status();
      if (status != in_progress)
        return status;
    }
  }

  static course::MemcpyRequest to_device(uint64_t device, uint64_t address, std::string bytes) {
    course::MemcpyRequest request;
    auto& to = *request.mutable_hosttodevice();
    to.mutable_dstdeviceid()->set_value(device);
    to.mutable_dstmemaddr()->set_value(address);
    to.set_hostsrcdata(std::move(bytes));
    return request;
  }
  static course::MemcpyRequest to_host(uint64_t device, uint64_t address, uint64_t bytes) {
    course::MemcpyRequest request;
    auto& from = *request.mutable_devicetohost();
    from.mutable_srcdeviceid()->set_value(device);
    from.mutable_srcmemaddr()->set_value(address);
    from.set_numbytes(bytes);
    return request;
  }

  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

  static constexpr std::chrono::milliseconds usual_limit{20'000};

private:
  template <class Chunk>
  outcome<course::StreamSendResponse> stream_send_of(std::deque<Chunk> chunks, const metadata& with) {
    struct sender : grpc::ClientBidiReactor<Chunk, course::StreamSendResponse> {
      void OnWriteDone(bool ok) override {
        chunks.pop_front();
        ok && !chunks.empty() ? this->StartWrite(&chunks.front()) : this->StartWritesDone();
      }
      void OnDone(const grpc::Status& status) override {
        result.status = status;
        done.set_value();
      }
      std::deque<Chunk> chunks;
      outcome<course::StreamSendResponse> result;
      std::promise<void> done;
    } run;
    run.chunks = std::move(chunks);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + usual_limit);
    for (auto& [name, value] : with)
      context.AddMetadata(name, value);
    grpc::TemplatedGenericStub<Chunk, course::StreamSendResponse>{channel_}.PrepareBidiStreamingCall(
      &context, "/gpu_sim.GPUDevice/StreamSend", {}, &run);
    run.StartRead(&run.result.value);
    run.StartWrite(&run.chunks.front());
    run.StartCall();
    run.done.get_future().wait();
    return run.result;
  }

  static grpc::ChannelArguments arguments(int receive_bytes_max) {
    grpc::ChannelArguments result;
    result.SetMaxReceiveMessageSize(receive_bytes_max);
    result.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1); // a connection of its own
    return result;
  }

  std::shared_ptr<grpc::Channel> channel_;
};

} // namespace ringmaster::test
