#include "gateway/course/course_service.hpp"

#include "gateway/course/method_names.hpp"
#include "gateway/course/reflection.hpp"
#include "gateway/course/status_codes.hpp"
#include "messages/errc.hpp"
#include "runtime/invariants/ensure.hpp"
#include "runtime/text/quantity_parse.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringmaster::gateway {

namespace {

grpc::Status refuse(grpc::GenericCallbackServerContext& context, const caf::error& problem) {
  context.AddTrailingMetadata(code_metadata, to_string(static_cast<errc>(wire_code(problem))));
  return status_of(problem);
}

/// Ends a call at once.
class refused_call final : public grpc::ServerGenericBidiReactor {
public:
  explicit refused_call(grpc::Status why) { Finish(std::move(why)); }
  void OnDone() override { delete this; }
};

/// A reactor that ends with an answer, or with an error and its code.
class answering_reactor : public grpc::ServerGenericBidiReactor {
public:
  explicit answering_reactor(grpc::GenericCallbackServerContext& context) : context_(context) {}
  void OnDone() override { delete this; }

protected:
  /// Nothing of this object may be used afterwards.
  void end(const caf::error& problem, grpc::ByteBuffer answer) {
    if (problem)
      return Finish(refuse(context_, problem));
    answer_ = std::move(answer);
    StartWriteAndFinish(&answer_, grpc::WriteOptions{}, grpc::Status::OK);
  }

private:
  grpc::GenericCallbackServerContext& context_;
  grpc::ByteBuffer answer_; ///< Until it is sent.
};

caf::error no_message() {
  return invalid("the call has no request");
}

/// One request, one answer.
class unary_call final : public answering_reactor {
public:
  unary_call(const call_server& serve, grpc::GenericCallbackServerContext& context, call_origin origin,
             call_registry::ticket_pointer ticket)
    : answering_reactor(context), serve_(serve), origin_(std::move(origin)), ticket_(std::move(ticket)) {
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    if (!ok)
      return end(no_message(), {});
    if (auto problem = ticket_->reserve(request_.Length()))
      return end(problem, {});
    serve_(std::make_shared<course_call>(ticket_, std::move(origin_), std::move(request_),
                                         [this](const caf::error& problem, grpc::ByteBuffer answer) {
                                           end(problem, std::move(answer));
                                         }));
  }

private:
  const call_server& serve_;
  call_origin origin_;
  call_registry::ticket_pointer ticket_;
  grpc::ByteBuffer request_;
};

/// StreamSend: each chunk is a call of its own, and the next one is read when it is answered.
class chunk_call final : public answering_reactor {
public:
  chunk_call(const call_server& serve, grpc::GenericCallbackServerContext& context, call_origin origin,
             call_registry::ticket_pointer ticket)
    : answering_reactor(context), serve_(serve), origin_(std::move(origin)), ticket_(std::move(ticket)) {
    origin_.chunks_stream = std::make_shared<std::optional<uint64_t>>();
    StartRead(&chunk_);
  }

  void OnReadDone(bool ok) override {
    if (!ok)
      return chunks_ == 0 ? end(no_message(), {}) : end(caf::none, std::move(latest_answer_));
    ++chunks_;
    if (auto problem = ticket_->hold(chunk_.Length()))
      return end(problem, {});
    serve_(std::make_shared<course_call>(ticket_, origin_, std::move(chunk_),
                                         [this](const caf::error& problem, grpc::ByteBuffer answer) {
                                           took(problem, std::move(answer));
                                         }));
  }

private:
  void took(const caf::error& problem, grpc::ByteBuffer answer) {
    if (problem)
      return end(problem, {});
    const auto none_left = ticket_->hold(0);
    ensure(!none_left, "a call may always hold nothing");
    latest_answer_ = std::move(answer);
    StartRead(&chunk_);
  }

  const call_server& serve_;
  call_origin origin_;
  call_registry::ticket_pointer ticket_;
  grpc::ByteBuffer chunk_, latest_answer_;
  uint64_t chunks_ = 0;
};

} // namespace

grpc::ServerGenericBidiReactor* course_service::CreateReactor(grpc::GenericCallbackServerContext* context) {
  if (context->method() == reflection_method)
    return new_reflection();
  if (!serves(context->method()))
    return new refused_call{{grpc::UNIMPLEMENTED, fmt::format("there is no method {}", context->method())}};
  if (const auto problem = check_caller(*context))
    return new refused_call{refuse(*context, problem)};
  auto origin = origin_of(*context);
  if (!origin)
    return new refused_call{refuse(*context, origin.error())};
  auto ticket = registry_->admit();
  if (!ticket)
    return new refused_call{refuse(*context, ticket.error())};
  if (origin->method == methods::stream_send)
    return new chunk_call{serve_, *context, std::move(*origin), std::move(*ticket)};
  return new unary_call{serve_, *context, std::move(*origin), std::move(*ticket)};
}

bool course_service::serves(std::string_view method) const {
  return std::ranges::find(methods::of_device, method) != methods::of_device.end()
         || (!place_ && std::ranges::find(methods::of_coordinator, method) != methods::of_coordinator.end());
}

caf::error course_service::check_caller(const grpc::GenericCallbackServerContext& context) const {
  const auto guard = guard_.load();
  if (guard == nullptr)
    return make_error(errc::unreachable, "the gateway is starting");
  const auto& metadata = context.client_metadata();
  const auto presented = metadata.find("authorization");
  return guard->check(context.peer(), presented == metadata.end()
                                        ? std::string_view{}
                                        : std::string_view{presented->second.data(), presented->second.size()});
}

caf::expected<call_origin> course_service::origin_of(const grpc::GenericCallbackServerContext& context) const {
  call_origin result;
  result.method = context.method();
  result.place = place_;
  const auto& metadata = context.client_metadata();
  auto number = [&](const char* name, std::optional<uint64_t>& target) -> caf::error {
    const auto i = metadata.find(name);
    if (i == metadata.end())
      return caf::none;
    const auto value = parse_whole({i->second.data(), i->second.size()}, 0);
    if (!value)
      return with_context(fmt::format("the metadata {}", name), value.error());
    target = *value;
    return caf::none;
  };
  if (auto problem = number("device-id", result.device))
    return problem;
  if (auto problem = number("streamid", result.stream))
    return problem;
  const auto deadline = context.deadline(), now = std::chrono::system_clock::now();
  constexpr auto longest = std::chrono::hours{24 * 365};
  if (deadline < now + longest)
    result.limit = std::chrono::duration_cast<caf::timespan>(deadline - now);
  return result;
}

} // namespace ringmaster::gateway
