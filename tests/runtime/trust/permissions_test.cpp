#include "runtime/trust/permissions.hpp"

#include "tests/support/text_search.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string>

using namespace ringmaster;
using ringmaster::test::contains;

namespace {

constexpr role all_roles[] = {role::stranger, role::member, role::coordinator, role::node,
                              role::rank,     role::client, role::operating,   role::observer};
constexpr role clients[] = {role::client, role::operating, role::observer};

std::string to_device(std::string_view request) {
  return "gpu_sim::DeviceId+" + std::string{request};
}

std::set<role> allowed_for(std::string_view receiver, std::string_view types, bool is_response = false) {
  std::set<role> result;
  for (const auto as : all_roles)
    if (judge(as, {receiver, types, is_response}) == permission::allowed)
      result.insert(as);
  return result;
}

const std::set<role> everything{role::stranger, role::member, role::coordinator};

std::set<role> with(std::set<role> more) {
  more.insert(everything.begin(), everything.end());
  return more;
}

} // namespace

TEST_CASE("permissions: who may kill, drain, destroy, make communicators and see the cluster") {
  const auto coordinator = [](std::string_view types) { return allowed_for("coordinator", types); };
  CHECK(coordinator(to_device("ringmaster::proto::FaultRequest")) == with({role::operating}));
  CHECK(coordinator("ringmaster::proto::DrainRequest") == with({role::operating}));
  const auto users = with({role::rank, role::client, role::operating});
  CHECK(coordinator("ringmaster::proto::CommDestroyRequest") == users);
  CHECK(coordinator("gpu_sim::CommInitRequest") == users);
  CHECK(coordinator("gpu_sim::MemcpyRequest+ringmaster::byte_block") == users);
  CHECK(coordinator("ringmaster::proto::JournalTailRequest") == users);
  const auto all = with({role::node, role::rank, role::client, role::operating, role::observer});
  CHECK(coordinator("ringmaster::proto::ClusterStatusRequest") == all);
  CHECK(coordinator("ringmaster::proto::ClusterInfoRequest") == all);
  const auto devices = with({role::node, role::rank});
  CHECK(coordinator("ringmaster::proto::NodeJoinRequest+@strong_actor_ptr") == devices);
  CHECK(coordinator("ringmaster::proto::RendezvousRequest") == with({role::rank}));
}

TEST_CASE("permissions: an observer may look, and nothing else") {
  std::set<std::string_view> acts;
  for (auto& row : permission_rows())
    if (judge(role::observer, {row.receiver, row.types}) == permission::allowed)
      acts.insert(row.act);
  CHECK(acts
        == std::set<std::string_view>{"see devices", "see the cluster", "greet the coordinator",
                                      "come back after a restart"});
}

TEST_CASE("permissions: links, notices and bare errors pass for no role and to no receiver") {
  for (const auto as : all_roles)
    for (const auto* receiver : {"coordinator", "node", "device", "stream", "communicator", "journal", "relay_entrance",
                                 "trainer", "a user's actor", ""})
      for (const auto* types : {"@down", "@error", "@group_down", "@atom+@strong_actor_ptr", "@timeout"}) {
        CAPTURE(receiver);
        CAPTURE(types);
        CHECK(judge(as, {receiver, types}) == permission::never);
      }
  CHECK(allowed_for("coordinator", "@error", true) == with({role::node, role::rank})); // the answer to a request
}

TEST_CASE("permissions: an exit message passes from the coordinator to devices, and from trainers to their ranks") {
  for (const auto* receiver :
       {"coordinator", "node", "stream", "communicator", "journal", "relay_entrance", "trainer", "a user's actor"})
    CHECK(allowed_for(receiver, "@exit").empty());
  CHECK(allowed_for("device", "@exit") == std::set{role::coordinator, role::stranger}); // and no other member
  CHECK(allowed_for("training-rank", "@exit") == with({role::rank}));
  CHECK(allowed_for("", "@exit") == with({role::rank})); // where the receiver's process judges again
}

TEST_CASE("permissions: actors of the system get nothing that they do not know, and nothing that is for themselves") {
  for (const auto as : all_roles)
    for (const auto* receiver :
         {"coordinator", "node", "device", "stream", "communicator", "journal", "relay", "relay_entrance", "call_gate"})
      for (const auto* types :
           {"@str+@str", "@atom", "@atom+@u64", "", "ringmaster::proto::SpareRequest", "@message"}) {
        CAPTURE(receiver);
        CAPTURE(types);
        CHECK(judge(as, {receiver, types}) == permission::never);
      }
}

TEST_CASE("permissions: clients reach the coordinator only, and answer nothing") {
  for (const auto as : clients) {
    for (auto& row : permission_rows()) {
      CAPTURE(row.types);
      if (row.receiver != "coordinator")
        CHECK(judge(as, {row.receiver, row.types}) == permission::denied);
      CHECK(judge(as, {"", row.types}) == permission::denied); // by way of this process
    }
    CHECK(judge(as, {"trainer", "@str"}) == permission::denied);
    CHECK(judge(as, {"communicator", "ringmaster::proto::CollectiveRequest"}) != permission::allowed);
    CHECK(judge(as, {"coordinator", "ringmaster::proto::AllocateResponse", true}) == permission::denied);
  }
}

TEST_CASE("permissions: a node exchanges blocks and reports, and calls nothing that a client calls") {
  CHECK(judge(role::node, {"stream", "ringmaster::offer"}) == permission::allowed);
  CHECK(judge(role::node, {"", "ringmaster::offer"}) == permission::allowed); // passed on to another node
  CHECK(judge(role::node, {"communicator", "ringmaster::proto::RankReports"}) == permission::allowed);
  for (const auto* types : {"gpu_sim::CommInitRequest", "ringmaster::proto::CollectiveRequest",
                            "ringmaster::proto::CommDestroyRequest", "ringmaster::proto::DrainRequest"})
    CHECK(judge(role::node, {"coordinator", types}) == permission::denied);
  CHECK(judge(role::node, {"device", "ringmaster::proto::FaultRequest"}) == permission::denied);
  CHECK(judge(role::node, {"node", "ringmaster::proto::NodeDrained"}) == permission::denied);
  CHECK(judge(role::node, {"", "ringmaster::proto::FaultRequest"}) == permission::denied);
}

TEST_CASE("permissions: a refusal says which role is needed") {
  const received_message kill{"coordinator", "gpu_sim::DeviceId+ringmaster::proto::FaultRequest"};
  CHECK(why_not(role::observer, kill)
        == "an observer may not kill, hang or slow devices: that needs the role operator");
  CHECK(why_not(role::client, kill) == "a client may not kill, hang or slow devices: that needs the role operator");
  CHECK(why_not(role::client, {"coordinator", "ringmaster::proto::DeviceJoinRequest"})
        == "a client may not bring devices: that needs the role rank");
  CHECK(contains(why_not(role::client, {"device", "ringmaster::proto::FaultRequest"}),
                 "may send to the coordinator only"));
  CHECK(why_not(role::member, {"coordinator", "@exit"}) == "no other process may send @exit to coordinator");
}

TEST_CASE("permissions: the names of roles") {
  for (const auto as : all_roles) {
    const bool can_be_given = as != role::stranger && as != role::member;
    CHECK(parse_role(name_of(as)) == (can_be_given ? std::optional{as} : std::nullopt));
  }
  CHECK_FALSE(parse_role("operating"));
  CHECK_FALSE(parse_role(""));
}
