#include "gateway/course/course_call.hpp"

#include "messages/errc.hpp"

#include <fmt/format.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <algorithm>

namespace ringmaster::gateway {

course_call::course_call(call_registry::ticket_pointer ticket, call_origin origin, grpc::ByteBuffer request,
                         reply answers)
  : ticket_(std::move(ticket)), origin_(std::move(origin)), request_(std::move(request)), reply_(std::move(answers)) {
  ticket_->owner().add(this);
}

course_call::~course_call() {
  ticket_->owner().remove(this);
  fail(make_error(errc::unreachable, "the gateway has lost its cluster"));
}

caf::error course_call::parse(google::protobuf::MessageLite& into) {
  grpc::ProtoBufferReader reader{&request_};
  if (into.ParseFromZeroCopyStream(&reader))
    return caf::none;
  return invalid(fmt::format("the request is no {}", into.GetTypeName()));
}

void course_call::answer(const google::protobuf::MessageLite& x) {
  grpc::Slice bytes{x.ByteSizeLong()};
  x.SerializeWithCachedSizesToArray(const_cast<uint8_t*>(bytes.begin()));
  answer(grpc::ByteBuffer{&bytes, 1});
}

void course_call::started(caf::actor_clock::time_point now, caf::timespan usual_limit) {
  ends_at_ = now + origin_.limit.value_or(usual_limit);
}

caf::timespan course_call::left(caf::actor_clock::time_point now) const {
  return std::max<caf::timespan>(ends_at_ - now, std::chrono::milliseconds{1});
}

void course_call::finish(const caf::error& problem, grpc::ByteBuffer x) {
  if (!answered_.exchange(true))
    reply_(problem, std::move(x));
}

} // namespace ringmaster::gateway
