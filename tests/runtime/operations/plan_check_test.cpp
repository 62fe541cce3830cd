#include "runtime/operations/plan_check.hpp"

#include "messages/errc.hpp"
#include "tests/support/text_search.hpp"

#include <doctest/doctest.h>

#include <functional>

using namespace ringmaster;
using ringmaster::test::contains;

namespace {

proto::OperationPlan plan_of_three() {
  proto::OperationPlan result;
  result.set_comm_id(1);
  result.set_epoch(2);
  result.set_sequence(3);
  result.mutable_collective()->set_kind(proto::ALL_REDUCE);
  result.mutable_collective()->set_count(8);
  for (uint64_t device = 1; device <= 3; ++device) {
    result.add_device_ids(device);
    result.add_input_addresses(device << 40);
    result.add_output_addresses((device << 40) + 64);
  }
  return result;
}

/// Of 8 elements: 3 and 5.
proto::OperationPlan fused_plan() {
  auto result = plan_of_three();
  for (uint64_t count : {3, 5}) {
    auto& part = *result.add_fused();
    part.set_count(count);
    *part.mutable_input_addresses() = result.input_addresses();
    *part.mutable_output_addresses() = result.output_addresses();
  }
  result.clear_input_addresses();
  result.clear_output_addresses();
  return result;
}

std::string refusal(proto::OperationPlan plan, const std::function<void(proto::OperationPlan&)>& change) {
  change(plan);
  const auto problem = check_plan(plan, device_id{2}, 3);
  return problem ? render(problem) : "none";
}

} // namespace

TEST_CASE("plan check: plans that communicators send pass, whatever they consist of") {
  CHECK(refusal(plan_of_three(), [](auto&) {}) == "none");
  CHECK(refusal(fused_plan(), [](auto&) {}) == "none");
  CHECK(refusal(plan_of_three(), [](auto& x) { *x.add_next() = plan_of_three(); }) == "none");
  CHECK(refusal(plan_of_three(), [](auto& x) { *x.add_next() = fused_plan(); }) == "none");
  CHECK(refusal(plan_of_three(),
                [](auto& x) {
                  x.mutable_collective()->set_op(gpu_sim::PREMUL_SUM);
                  x.mutable_collective()->add_factors(2);
                })
        == "none");
}

TEST_CASE("plan check: a plan that lacks something for a rank, or has a count that makes no sense, is refused") {
  struct row {
    const char* why;
    std::function<void(proto::OperationPlan&)> change;
  };
  const auto collective = [](auto change) {
    return [change](proto::OperationPlan& x) { change(*x.mutable_collective()); };
  };
  const row rows[] = {
    {"other devices came to device 0x2", [](auto& x) { x.set_device_ids(1, 9); }},
    {"2 ranks came with the handles of 3", [](auto& x) { x.mutable_device_ids()->RemoveLast(); }},
    {"has 2 input addresses and 3", [](auto& x) { x.mutable_input_addresses()->RemoveLast(); }},
    {"and 4 output addresses", [](auto& x) { x.add_output_addresses(1); }},
    {"collective 99 is not", collective([](auto& x) { x.set_kind(static_cast<proto::CollectiveKind>(99)); })},
    {"datatype 99 is not", collective([](auto& x) { x.set_datatype(static_cast<proto::DataType>(99)); })},
    {"more bytes than an address can count", collective([](auto& x) { x.set_count(uint64_t{1} << 61); })},
    {"has 2 factors", collective([](auto& x) {
       x.set_op(gpu_sim::PREMUL_SUM);
       x.add_factors(1);
       x.add_factors(1);
     })},
    {"root 3", collective([](auto& x) {
       x.set_kind(proto::BROADCAST);
       x.set_root(3);
     })},
    {"a series of plans", [](auto& x) { x.add_next()->set_comm_id(1); }},
    {"a series of plans", [](auto& x) {
       *x.add_next() = plan_of_three();
       *x.mutable_next(0)->add_next() = plan_of_three();
     }}};
  for (const auto& x : rows) {
    const auto why = refusal(plan_of_three(), x.change);
    CHECK_MESSAGE(contains(why, x.why), why);
  }
}

TEST_CASE("plan check: fused operations fill their plan exactly") {
  CHECK(contains(refusal(fused_plan(), [](auto& x) { x.mutable_fused(0)->set_count(4); }), "fused operations of more"));
  CHECK(contains(refusal(fused_plan(), [](auto& x) { x.mutable_fused(0)->set_count(UINT64_MAX); }), "of more"));
  CHECK(contains(refusal(fused_plan(), [](auto& x) { x.mutable_fused(0)->set_count(2); }), "other counts"));
  CHECK(contains(refusal(fused_plan(), [](auto& x) { x.mutable_fused(1)->clear_output_addresses(); }),
                 "0 output addresses"));
}
