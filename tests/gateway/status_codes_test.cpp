#include "gateway/course/status_codes.hpp"
#include "messages/errc.hpp"

#include <caf/exit_reason.hpp>
#include <caf/sec.hpp>

#include <doctest/doctest.h>

using namespace ringmaster;
using namespace ringmaster::gateway;

namespace {

grpc::StatusCode code_for(errc code) {
  return status_of(make_error(code, "why")).error_code();
}

} // namespace

TEST_CASE("status codes: each error has one that a client can act on") {
  CHECK(status_of({}).ok());
  CHECK(code_for(errc::unknown_communicator) == grpc::NOT_FOUND);
  CHECK(code_for(errc::unknown_device) == grpc::NOT_FOUND);
  CHECK(code_for(errc::unknown_stream) == grpc::NOT_FOUND);
  CHECK(code_for(errc::out_of_range) == grpc::OUT_OF_RANGE);
  CHECK(code_for(errc::too_few_devices) == grpc::RESOURCE_EXHAUSTED);
  CHECK(code_for(errc::too_many) == grpc::RESOURCE_EXHAUSTED);
  CHECK(code_for(errc::out_of_memory) == grpc::RESOURCE_EXHAUSTED);
  CHECK(code_for(errc::group_misuse) == grpc::FAILED_PRECONDITION);
  CHECK(code_for(errc::in_use) == grpc::FAILED_PRECONDITION);
  CHECK(code_for(errc::refused) == grpc::FAILED_PRECONDITION);
  CHECK(code_for(errc::invalid_argument) == grpc::INVALID_ARGUMENT);
  CHECK(code_for(errc::size_mismatch) == grpc::INVALID_ARGUMENT);
  CHECK(code_for(errc::too_large) == grpc::INVALID_ARGUMENT);
  CHECK(code_for(errc::timed_out) == grpc::DEADLINE_EXCEEDED);
  CHECK(code_for(errc::device_lost) == grpc::UNAVAILABLE);
  CHECK(code_for(errc::suspected) == grpc::UNAVAILABLE);
  CHECK(code_for(errc::unreachable) == grpc::UNAVAILABLE);
  CHECK(code_for(errc::aborted) == grpc::ABORTED);
  CHECK(code_for(errc::corrupt) == grpc::INTERNAL);
}

TEST_CASE("status codes: no code of ours is OK or UNKNOWN") {
  for (int code = 1; code < errc_count; ++code) {
    const auto status = status_of(make_error(static_cast<errc>(code), "why"));
    CHECK(status.error_code() != grpc::OK);
    CHECK(status.error_code() != grpc::UNKNOWN);
    CHECK(status.error_message() == "why");
  }
}

TEST_CASE("status codes: errors of CAF, and long texts") {
  CHECK(status_of(caf::sec::request_timeout).error_code() == grpc::DEADLINE_EXCEEDED);
  CHECK(status_of(caf::exit_reason::kill).error_code() == grpc::UNAVAILABLE);
  CHECK(status_of(make_error(errc::refused, std::string(1'000'000, 'x'))).error_message().size() == 1024);
}
