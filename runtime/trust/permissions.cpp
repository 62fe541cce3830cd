#include "runtime/trust/permissions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

namespace ringmaster {

namespace {

// Of `messages/interfaces.hpp`, what other processes may send. What is not here is between actors of one process.
constexpr permission_row rows[] = {
  {"coordinator", "gpu_sim::GetCommStatusRequest", "rco", "use communicators"},
  {"coordinator", "gpu_sim::GroupStartRequest", "rco", "use communicators"},
  {"coordinator", "gpu_sim::GroupEndRequest", "rco", "use communicators"},
  {"coordinator", "gpu_sim::CommInitRequest", "rco", "make communicators"},
  {"coordinator", "ringmaster::proto::CommDeriveRequest", "rco", "make communicators"},
  {"coordinator", "gpu_sim::AllReduceRingRequest", "rco", "use communicators"},
  {"coordinator", "ringmaster::proto::CollectiveRequest", "rco", "use communicators"},
  {"coordinator", "ringmaster::proto::CollectiveRequests", "rco", "use communicators"},
  {"coordinator", "ringmaster::proto::RankCall", "rco", "use communicators"},
  {"coordinator", "ringmaster::proto::CommWaitRequest", "rco", "use communicators"},
  {"coordinator", "ringmaster::proto::CommAbortRequest", "rco", "abort communicators"},
  {"coordinator", "ringmaster::proto::CommDestroyRequest", "rco", "destroy communicators"},
  {"coordinator", "gpu_sim::MemcpyRequest", "rco", "use the memory of devices"},
  {"coordinator", "gpu_sim::MemcpyRequest+ringmaster::byte_block", "rco", "use the memory of devices"},
  {"coordinator", "gpu_sim::DeviceId+gpu_sim::BeginSendRequest", "rco", "use the memory of devices"},
  {"coordinator", "gpu_sim::DeviceId+gpu_sim::BeginReceiveRequest", "rco", "use the memory of devices"},
  {"coordinator", "gpu_sim::DeviceId+gpu_sim::DataChunk", "rco", "use the memory of devices"},
  {"coordinator", "gpu_sim::DeviceId+ringmaster::proto::CopyRequest", "rco", "use the memory of devices"},
  {"coordinator", "gpu_sim::DeviceId+ringmaster::proto::AllocateRequest", "rco", "use the memory of devices"},
  {"coordinator", "gpu_sim::DeviceId+ringmaster::proto::FreeRequest", "rco", "use the memory of devices"},
  {"coordinator", "gpu_sim::DeviceId+gpu_sim::GetStreamStatusRequest", "rco", "use streams of devices"},
  {"coordinator", "gpu_sim::DeviceId+ringmaster::proto::StreamCreateRequest", "rco", "use streams of devices"},
  {"coordinator", "gpu_sim::DeviceId+ringmaster::proto::StreamSynchronizeRequest", "rco", "use streams of devices"},
  {"coordinator", "gpu_sim::DeviceId+ringmaster::proto::EventRecordRequest", "rco", "use streams of devices"},
  {"coordinator", "gpu_sim::DeviceId+ringmaster::proto::EventWaitRequest", "rco", "use streams of devices"},
  {"coordinator", "gpu_sim::DeviceId+gpu_sim::GetDeviceMetadataRequest", "nrcob", "see devices"},
  {"coordinator", "gpu_sim::DeviceId+ringmaster::proto::FaultRequest", "o", "kill, hang or slow devices"},
  {"coordinator", "ringmaster::proto::DrainRequest", "o", "drain nodes"},
  {"coordinator", "gpu_sim::DeviceId", "rco", "reach devices"},
  {"coordinator", "ringmaster::proto::ClusterInfoRequest", "nrcob", "see the cluster"},
  {"coordinator", "ringmaster::proto::ClusterStatusRequest", "nrcob", "see the cluster"},
  {"coordinator", "ringmaster::proto::JournalFlushRequest", "nrco", "write the journal"},
  {"coordinator", "ringmaster::proto::JournalTailRequest", "rco", "read the journal"},
  {"coordinator", "ringmaster::proto::RendezvousRequest", "r", "be a rank of a group"},
  {"coordinator", "ringmaster::proto::FinalizeRequest", "r", "be a rank of a group"},
  {"coordinator", "ringmaster::proto::RankAbsentRequest", "ro", "report ranks as absent"},
  {"coordinator", "ringmaster::proto::MeetingRequest", "r", "be a rank of a group"},
  {"coordinator", "ringmaster::proto::MetReport", "r", "be a rank of a group"},
  {"coordinator", "ringmaster::proto::TrainingStep", "rco", "record training steps"},
  {"coordinator", "@str+@strong_actor_ptr", "rco", "publish actors"},
  {"coordinator", "@str", "rco", "look up actors"},
  {"coordinator", "ringmaster::proto::NodeJoinRequest+@strong_actor_ptr", "nr", "bring devices"},
  {"coordinator", "ringmaster::proto::NodeJoinRequest+@strong_actor_ptr+ringmaster::device_handles", "nr",
   "bring devices"},
  {"coordinator", "ringmaster::proto::DeviceJoinRequest", "nr", "bring devices"},
  {"coordinator", "ringmaster::proto::DeviceReady+ringmaster::device_handle", "nr", "bring devices"},
  {"coordinator", "ringmaster::proto::NodeApart", "nr", "report nodes as disconnected"},
  {"coordinator", "ringmaster::proto::Progress", "nr", "report on devices"},
  {"coordinator", "ringmaster::proto::ProgressReport", "nr", "report on devices"},
  {"coordinator", "ringmaster::proto::GreetingRequest", "nrcob", "greet the coordinator"},
  {"coordinator", "ringmaster::proto::ClientReturn", "nrcob", "come back after a restart"},
  {"communicator", "ringmaster::proto::RankReport", "nr", "report to communicators"},
  {"communicator", "ringmaster::shared_memory_arrival", "nr", "report to communicators"},
  {"communicator", "ringmaster::proto::Quiesced", "nr", "report to communicators"},
  {"communicator", "ringmaster::proto::Progress", "nr", "report to communicators"},
  {"communicator", "ringmaster::proto::ProgressReport", "nr", "report to communicators"},
  {"communicator", "ringmaster::proto::RankReports", "nr", "report to communicators"},
  {"communicator", "ringmaster::shared_memory_arrivals", "nr", "report to communicators"},
  {"journal", "ringmaster::proto::Record", "nr", "write the journal"},
  {"journal", "ringmaster::proto::Records", "nr", "write the journal"},
  {"node", "ringmaster::proto::NodePeers", "", "give orders to nodes"},
  {"node", "ringmaster::proto::NodeDrained", "", "give orders to nodes"},
  {"node", "ringmaster::proto::AliveRequest", "nr", "ask nodes whether they live"},
  {"node", "ringmaster::proto::ClusterIdentity", "", "give orders to nodes"},
  {"node", "ringmaster::proto::NodePeers_Peer", "", "give orders to nodes"},
  {"node", "ringmaster::proto::Adopt+@strong_actor_ptr", "", "give orders to nodes"},
  {"node", "ringmaster::proto::NodeApart+@strong_actor_ptr", "nr", "connect to nodes"},
  {"relay_entrance", "ringmaster::membership+std::vector<ringmaster::device_id>", "", "give orders to devices"},
  {"relay_entrance", "ringmaster::operation_orders+std::vector<ringmaster::device_id>", "", "give orders to devices"},
  {"relay_entrance", "ringmaster::proto::Release+std::vector<ringmaster::device_id>", "", "give orders to devices"},
  {"relay_entrance", "ringmaster::proto::Quiesce+std::vector<ringmaster::device_id>", "", "give orders to devices"},
  {"relay_entrance", "ringmaster::proto::Verdict", "", "give orders to devices"},
  {"relay_entrance", "ringmaster::proto::ProgressRequest+std::vector<ringmaster::device_id>", "",
   "give orders to devices"},
  {"device", "gpu_sim::GetDeviceMetadataRequest", "", "give orders to devices"},
  {"device", "gpu_sim::BeginSendRequest", "", "give orders to devices"},
  {"device", "gpu_sim::BeginReceiveRequest", "", "give orders to devices"},
  {"device", "gpu_sim::DataChunk", "", "give orders to devices"},
  {"device", "gpu_sim::GetStreamStatusRequest", "", "give orders to devices"},
  {"device", "gpu_sim::MemcpyRequest+ringmaster::byte_block", "", "give orders to devices"},
  {"device", "ringmaster::proto::CopyRequest", "", "give orders to devices"},
  {"device", "ringmaster::proto::AllocateRequest", "", "give orders to devices"},
  {"device", "ringmaster::proto::FreeRequest", "", "give orders to devices"},
  {"device", "ringmaster::proto::StreamCreateRequest", "", "give orders to devices"},
  {"device", "ringmaster::proto::StreamSynchronizeRequest", "", "give orders to devices"},
  {"device", "ringmaster::proto::EventRecordRequest", "", "give orders to devices"},
  {"device", "ringmaster::proto::EventWaitRequest", "", "give orders to devices"},
  {"device", "ringmaster::proto::FaultRequest", "", "give orders to devices"},
  {"device", "ringmaster::proto::RecallRequest", "", "give orders to devices"},
  {"device", "ringmaster::membership", "", "give orders to devices"},
  {"device", "ringmaster::proto::DeviceJoinResponse", "", "give orders to devices"},
  {"device", "ringmaster::offer", "nr", "send blocks to devices"},
  {"device", "ringmaster::refused", "nr", "send blocks to devices"},
  {"stream", "ringmaster::operation_orders", "", "give orders to devices"},
  {"stream", "ringmaster::proto::Release", "", "give orders to devices"},
  {"stream", "ringmaster::proto::Quiesce", "", "give orders to devices"},
  {"stream", "ringmaster::proto::ProgressRequest", "", "give orders to devices"},
  {"stream", "ringmaster::offer", "nr", "send blocks to devices"},
  {"stream", "ringmaster::taken", "nr", "send blocks to devices"},
  {"stream", "ringmaster::refused", "nr", "send blocks to devices"},
  {"stream", "ringmaster::pull", "nr", "send blocks to devices"},
  {"stream", "ringmaster::chunk", "nr", "send blocks to devices"},
};

constexpr char letter_of(role x) {
  switch (x) {
    case role::node: return 'n';
    case role::rank: return 'r';
    case role::client: return 'c';
    case role::operating: return 'o';
    case role::observer: return 'b';
    default: return '*'; // may do everything
  }
}

struct names_hash {
  size_t operator()(const std::pair<std::string_view, std::string_view>& x) const {
    return std::hash<std::string_view>{}(x.first) * 31 + std::hash<std::string_view>{}(x.second);
  }
};

/// Null: the receiver takes no such message from other processes.
const permission_row* row_of(std::string_view receiver, std::string_view types) {
  static const auto table = [] {
    std::unordered_map<std::pair<std::string_view, std::string_view>, const permission_row*, names_hash> result;
    for (auto& each : rows)
      result.emplace(std::pair{each.receiver, each.types}, &each);
    return result;
  }();
  const auto found = table.find({receiver, types});
  return found == table.end() ? nullptr : found->second;
}

/// Of a message that is passed on to a third process: the receiver there judges by the role of this one.
bool nodes_exchange(std::string_view types) {
  return std::ranges::any_of(rows, [&](auto& x) { return x.types == types && x.roles.find('n') != x.roles.npos; });
}

/// Actors of the system, which know all that other processes may send to them.
bool is_of_system(std::string_view receiver) {
  constexpr std::string_view answered_only[] = {
    "call_gate", "connection_watch", "coordinator_proxy", "proxy_sender", "rank", "relay"};
  return std::ranges::find(answered_only, receiver) != std::end(answered_only)
         || std::ranges::any_of(rows, [&](auto& x) { return x.receiver == receiver; });
}

/// What CAF itself obeys in any receiver, and what ends or misleads an actor that does not expect it.
bool commands_the_runtime(std::string_view types, bool is_response) {
  const auto first = types.substr(0, types.find('+'));
  constexpr std::string_view commands[] = {
    "@exit", "@down", "@group_down", "@timeout", "@open_stream_msg", "@upstream_msg", "@downstream_msg"};
  return std::ranges::find(commands, first) != std::end(commands) || types == "@atom+@strong_actor_ptr"
         || (first == "@error" && !is_response);
}

/// Whether it may end an actor there: the coordinator a device that it has given up, and a trainer its ranks.
bool may_end(role as, std::string_view receiver) {
  if (receiver == "device")
    return as == role::coordinator || as == role::stranger;
  const bool may_train = may_do_everything(as) || as == role::rank;
  return may_train && (receiver == "training-rank" || receiver.empty());
}

std::string_view needed_for(const permission_row& row) {
  for (const auto x : {role::observer, role::client, role::operating, role::rank, role::node})
    if (row.roles.find(letter_of(x)) != row.roles.npos)
      return name_of(x);
  return name_of(role::coordinator);
}

std::string with_article(role x) {
  const auto name = name_of(x);
  return fmt::format("{} {}", name.front() == 'o' ? "an" : "a", name);
}

} // namespace

bool may_do_everything(role x) {
  return letter_of(x) == '*';
}

bool is_client(role x) {
  return x == role::client || x == role::operating || x == role::observer;
}

std::span<const permission_row> permission_rows() {
  return rows;
}

permission judge(role as, const received_message& x) {
  if (x.types.starts_with('@') && commands_the_runtime(x.types, x.is_response))
    return x.types == "@exit" && may_end(as, x.receiver) ? permission::allowed : permission::never;
  const auto of_peers = [](bool is_allowed) { return is_allowed ? permission::allowed : permission::denied; };
  if (x.is_response)
    return of_peers(!is_client(as));
  if (const auto* row = row_of(x.receiver, x.types))
    return of_peers(may_do_everything(as) || row->roles.find(letter_of(as)) != row->roles.npos);
  if (x.receiver.empty())
    return of_peers(may_do_everything(as) || (!is_client(as) && nodes_exchange(x.types)));
  if (is_of_system(x.receiver))
    return permission::never;
  return of_peers(!is_client(as)); // to an actor of a training, or of a user's program
}

std::string why_not(role as, const received_message& x) {
  if (is_client(as) && x.receiver != "coordinator")
    return fmt::format("{} may send to the coordinator only, and has sent {} to {}", with_article(as), x.types,
                       x.receiver.empty() ? "another process" : x.receiver);
  const auto* row = row_of(x.receiver, x.types);
  if (row != nullptr && judge(as, x) == permission::denied)
    return fmt::format("{} may not {}: that needs the role {}", with_article(as), row->act, needed_for(*row));
  return fmt::format("no other process may send {} to {}", x.types.empty() ? "nothing" : x.types,
                     x.receiver.empty() ? "a third process" : x.receiver);
}

} // namespace ringmaster
