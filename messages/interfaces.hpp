#pragma once

#include "messages/type_ids.hpp"

#include <caf/replies_to.hpp>
#include <caf/typed_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

// The interface of every typed actor, except those of a training run: actors/training/interfaces.hpp.
// Where bulk data goes with a message it is the message's second element, a byte_block; where handles go with it they
// are the last.

namespace ringmaster {

/// STREAM: runs one device's commands strictly in order.
using stream_actor = caf::typed_actor<
  // COMMUNICATOR: enqueue these collectives, or take the new plans for those that wait for one.
  caf::reacts_to<operation_orders>,
  // COMMUNICATOR: the outcome is certain, put the result in place.
  caf::reacts_to<proto::Release>,
  // COMMUNICATOR: a new epoch opens. Answers by a Quiesced message.
  caf::reacts_to<proto::Quiesce>,
  // RELAY, or COMMUNICATOR where there is none: how far are you? Answers by a Progress message.
  caf::reacts_to<proto::ProgressRequest>,
  // DEVICE: completes what it knows of its communicators, and obeys none of their present epochs from then on.
  caf::replies_to<proto::RecallRequest, proto::Recalled>::with<proto::Recalled>,
  // Another STREAM: how blocks travel. See messages/transfer.hpp.
  caf::reacts_to<offer>, caf::reacts_to<taken>, caf::reacts_to<refused>, caf::reacts_to<pull>, caf::reacts_to<chunk>,
  // DEVICE: copy in or out; answers when the copy is done, bulk data beside it.
  caf::replies_to<gpu_sim::MemcpyRequest, byte_block>::with<gpu_sim::MemcpyResponse, byte_block>,
  // DEVICE: copy within the device.
  caf::replies_to<proto::CopyRequest>::with<proto::CopyResponse>,
  // DEVICE: this end of a transfer. The id is the transfer's, the handle the destination's.
  caf::reacts_to<gpu_sim::BeginSendRequest, gpu_sim::StreamId, device_handle>,
  // The id is the source's: bytes of any other source are refused.
  caf::reacts_to<gpu_sim::BeginReceiveRequest, gpu_sim::DeviceId>,
  // DEVICE: bytes from outside for a posted receive.
  caf::replies_to<gpu_sim::DataChunk>::with<gpu_sim::StreamSendResponse>,
  // DEVICE: tell me when the stream gets here, where the record has this number; wait for this record of the event; the
  // stream that makes it has come by.
  caf::replies_to<proto::EventRecordRequest, uint64_t>::with<proto::EventRecordResponse>,
  caf::replies_to<proto::EventWaitRequest, uint64_t>::with<proto::EventWaitResponse>,
  caf::reacts_to<atom::recorded, uint64_t, uint64_t>,
  // IN_PROGRESS while commands are queued, FAILED if the latest to end did.
  caf::replies_to<gpu_sim::GetStreamStatusRequest>::with<gpu_sim::GetStreamStatusResponse>,
  // Answers when all commands before it are done.
  caf::replies_to<proto::StreamSynchronizeRequest>::with<proto::StreamSynchronizeResponse>,
  // DEVICE: misbehave.
  caf::reacts_to<proto::FaultRequest>,
  // INTERNAL: go on with the command at the head, if it still is the one that asked; look at the limits.
  caf::reacts_to<atom::resume, uint64_t>, caf::reacts_to<atom::expire, uint64_t>>;

/// DEVICE: owns memory and streams.
using device_actor = caf::typed_actor<
  caf::replies_to<gpu_sim::GetDeviceMetadataRequest>::with<gpu_sim::GetDeviceMetadataResponse>,
  // Start a transfer and return at once; the bytes move in the background.
  caf::replies_to<gpu_sim::BeginSendRequest>::with<gpu_sim::BeginSendResponse>,
  caf::replies_to<gpu_sim::BeginReceiveRequest>::with<gpu_sim::BeginReceiveResponse>,
  caf::replies_to<gpu_sim::DataChunk>::with<gpu_sim::StreamSendResponse>,
  // Of a transfer, or of a stream as a whole.
  caf::replies_to<gpu_sim::GetStreamStatusRequest>::with<gpu_sim::GetStreamStatusResponse>,
  caf::replies_to<gpu_sim::MemcpyRequest, byte_block>::with<gpu_sim::MemcpyResponse, byte_block>,
  caf::replies_to<proto::CopyRequest>::with<proto::CopyResponse>,
  caf::replies_to<proto::AllocateRequest>::with<proto::AllocateResponse>,
  caf::replies_to<proto::FreeRequest>::with<proto::FreeResponse>,
  caf::replies_to<proto::StreamCreateRequest>::with<proto::StreamCreateResponse>,
  caf::replies_to<proto::StreamSynchronizeRequest>::with<proto::StreamSynchronizeResponse>,
  caf::replies_to<proto::EventRecordRequest>::with<proto::EventRecordResponse>,
  caf::replies_to<proto::EventWaitRequest>::with<proto::EventWaitResponse>,
  caf::replies_to<proto::FaultRequest>::with<proto::FaultResponse>,
  // COORDINATOR that was restarted: what do you know of your communicators?
  caf::replies_to<proto::RecallRequest>::with<proto::Recalled>,
  // COMMUNICATOR: who has which rank now.
  caf::reacts_to<membership>,
  // STREAM of another device: the first word of a transfer that may not have been posted here yet; it is off.
  caf::reacts_to<offer>, caf::reacts_to<refused>,
  // STREAM: a transfer, or any other command, has ended.
  caf::reacts_to<gpu_sim::StreamId, gpu_sim::GetStreamStatusResponse>,
  // STREAM: the event's record of this number is made.
  caf::reacts_to<atom::recorded, uint64_t, uint64_t>,
  // COORDINATOR: your id.
  caf::reacts_to<proto::DeviceJoinResponse>,
  // INTERNAL: forget what came too early and was never asked for.
  caf::reacts_to<atom::expire, uint64_t>>;

/// COMMUNICATOR: orders the operations of its ranks, and opens an epoch when one is lost.
using communicator_actor = caf::typed_actor<
  caf::replies_to<gpu_sim::GetCommStatusRequest>::with<gpu_sim::GetCommStatusResponse>,
  caf::replies_to<gpu_sim::GroupStartRequest>::with<gpu_sim::GroupStartResponse>,
  caf::replies_to<gpu_sim::GroupEndRequest>::with<gpu_sim::GroupEndResponse>,
  // Enqueue; answers when the operation has its number. Several at once: when all have.
  caf::replies_to<proto::CollectiveRequest>::with<proto::CollectiveResponse>,
  caf::replies_to<proto::CollectiveRequests>::with<proto::CollectiveResponses>,
  // RANK: my part of calls that all ranks make. Answers when they have ended, or when the limit passes.
  caf::replies_to<proto::RankCall>::with<proto::RankCallResponse>,
  // COORDINATOR: what are the ranks doing? Answers at once, with what is known.
  caf::replies_to<proto::CommunicatorStatusRequest>::with<proto::CommunicatorStatus>,
  // Answers when nothing is in flight or when the limit passes, saying what it waited for.
  caf::replies_to<proto::CommWaitRequest>::with<gpu_sim::GetCommStatusResponse>,
  // Fail what is in flight, refuse what comes.
  caf::replies_to<proto::CommAbortRequest>::with<proto::CommAbortResponse>,
  // Destroys it. Answers when no stream uses memory for it.
  caf::replies_to<proto::CommDestroyRequest>::with<proto::CommDestroyResponse>,
  // STREAM of a member.
  caf::reacts_to<proto::RankReport>, caf::reacts_to<shared_memory_arrival>, caf::reacts_to<proto::Quiesced>,
  caf::reacts_to<proto::Progress>,
  // RELAY: what the members of its process have said, and done.
  caf::reacts_to<proto::ProgressReport>, caf::reacts_to<proto::RankReports>, caf::reacts_to<shared_memory_arrivals>,
  // COORDINATOR: what is under way between two members may be lost.
  caf::reacts_to<proto::WayLost>,
  // COORDINATOR that was restarted: up to here a client's calls were acknowledged.
  caf::reacts_to<proto::CallsAcknowledged>,
  // COORDINATOR: another communicator has given up this member, and it is ended.
  caf::reacts_to<proto::MemberLost>,
  // COORDINATOR: these members are to leave. Answers when they have, or cannot.
  caf::replies_to<proto::LeaveRequest>::with<proto::LeaveResponse>,
  // INTERNAL: send the plans that have gathered; the data of the joint operation of this number is where it belongs.
  caf::reacts_to<atom::flush>, caf::reacts_to<atom::resume, uint64_t>,
  // INTERNAL: ask the members how far they are; judge their answers.
  caf::reacts_to<atom::tick>,
  // INTERNAL: a limit has passed.
  caf::reacts_to<atom::expire>>;

/// JOURNAL: the only one that touches the operation log on disk.
using journal_actor = caf::typed_actor<
  // Write this, soon. Costs the sender no wait.
  caf::reacts_to<proto::Record>,
  // The same for several, which wakes it once.
  caf::reacts_to<proto::Records>,
  // Answers when everything before it is durable.
  caf::replies_to<proto::JournalFlushRequest>::with<proto::JournalFlushResponse>,
  // Records, oldest first: the latest, or from an index on.
  caf::replies_to<proto::JournalTailRequest>::with<proto::JournalTailResponse>,
  // INTERNAL: write the batch.
  caf::reacts_to<atom::flush>>;

/// METADATA: writes the coordinator's store.
using metadata_actor = caf::typed_actor<
  // COORDINATOR: all of these, or none. Without a change: whether the store is in its place.
  caf::replies_to<proto::StoreChanges>::with<proto::StoreAnswer>>;

/// NODE: hosts the devices of one process.
using node_actor = caf::typed_actor<
  // COORDINATOR: these nodes have devices, too; talk to them directly.
  caf::reacts_to<proto::NodePeers>,
  // COORDINATOR: your devices are in no communicator: exit.
  caf::reacts_to<proto::NodeDrained>,
  // COORDINATOR, another NODE: does your process run, and that of this peer?
  caf::replies_to<proto::AliveRequest>::with<proto::AliveResponse>,
  // PROXY of the coordinator in this process: it is back after a restart.
  caf::reacts_to<proto::ClusterIdentity>,
  // Join the handle's coordinator.
  caf::reacts_to<proto::Adopt, caf::strong_actor_ptr>,
  // Another NODE: I have connected to you, my handle beside it. INTERNAL: whether this peer was reached, and its
  // handle. COORDINATOR, INTERNAL: try once more.
  caf::reacts_to<proto::NodeApart, caf::strong_actor_ptr>, caf::reacts_to<proto::NodePeers_Peer>>;

/// RELAY: between communicators and the streams of one process's devices.
using relay_actor = caf::typed_actor<
  // DEVICE of this process: I am ready.
  caf::reacts_to<proto::DeviceReady, device_handle>,
  // COMMUNICATOR, COORDINATOR: tell these devices.
  caf::reacts_to<membership, std::vector<device_id>>,
  // COMMUNICATOR: tell the streams of these devices. Of a progress request the answers are ProgressReport messages.
  caf::reacts_to<operation_orders, std::vector<device_id>>, caf::reacts_to<proto::Release, std::vector<device_id>>,
  caf::reacts_to<proto::Quiesce, std::vector<device_id>>,
  caf::reacts_to<proto::ProgressRequest, std::vector<device_id>>,
  // COMMUNICATOR: what went wrong, for the log of this process.
  caf::reacts_to<proto::Verdict>,
  // STREAM: what is for its communicator.
  caf::reacts_to<shared_memory_arrival>, caf::reacts_to<proto::RankReport>, caf::reacts_to<proto::Quiesced>,
  caf::reacts_to<proto::Progress>,
  // INTERNAL: report what there is.
  caf::reacts_to<atom::expire, uint64_t>>;

/// COORDINATOR: the host side. Knows nodes and devices, makes communicators, answers clients.
using coordinator_actor = caf::typed_actor<
  // CLIENT: the course protocol.
  caf::replies_to<gpu_sim::CommInitRequest>::with<gpu_sim::CommInitResponse>,
  caf::replies_to<gpu_sim::GetCommStatusRequest>::with<gpu_sim::GetCommStatusResponse>,
  caf::replies_to<gpu_sim::GroupStartRequest>::with<gpu_sim::GroupStartResponse>,
  caf::replies_to<gpu_sim::GroupEndRequest>::with<gpu_sim::GroupEndResponse>,
  caf::replies_to<gpu_sim::AllReduceRingRequest>::with<gpu_sim::AllReduceRingResponse>,
  // Bulk data within the message, as the course has it ...
  caf::replies_to<gpu_sim::MemcpyRequest>::with<gpu_sim::MemcpyResponse>,
  // ... or beside it, which copies it once.
  caf::replies_to<gpu_sim::MemcpyRequest, byte_block>::with<gpu_sim::MemcpyResponse, byte_block>,
  // CLIENT: what is ours.
  caf::replies_to<proto::CollectiveRequest>::with<proto::CollectiveResponse>,
  caf::replies_to<proto::CollectiveRequests>::with<proto::CollectiveResponses>,
  caf::replies_to<proto::RankCall>::with<proto::RankCallResponse>,
  caf::replies_to<proto::CommDeriveRequest>::with<proto::CommDeriveResponse>,
  // A process that is a rank has come, or has finished. Each answers when all ranks have.
  caf::replies_to<proto::RendezvousRequest>::with<proto::RendezvousResponse>,
  caf::replies_to<proto::FinalizeRequest>::with<proto::FinalizeResponse>,
  // LAUNCHER: its process has ended.
  caf::replies_to<proto::RankAbsentRequest>::with<proto::RankAbsentResponse>,
  // RANK: where its communicator's ranks meet without a message, and what they have done there.
  caf::replies_to<proto::MeetingRequest>::with<proto::MeetingResponse>, caf::reacts_to<proto::MetReport>,
  caf::replies_to<proto::CommWaitRequest>::with<gpu_sim::GetCommStatusResponse>,
  caf::replies_to<proto::CommAbortRequest>::with<proto::CommAbortResponse>,
  caf::replies_to<proto::CommDestroyRequest>::with<proto::CommDestroyResponse>,
  caf::replies_to<proto::ClusterInfoRequest>::with<proto::ClusterInfo>,
  // What are all ranks and nodes doing? Answers within a tenth of a second, with what is known.
  caf::replies_to<proto::ClusterStatusRequest>::with<proto::ClusterStatus>,
  caf::replies_to<proto::JournalFlushRequest>::with<proto::JournalFlushResponse>,
  caf::replies_to<proto::JournalTailRequest>::with<proto::JournalTailResponse>,
  // CLIENT: this node's devices leave their communicators, and then it ends.
  caf::replies_to<proto::DrainRequest>::with<proto::DrainResponse>,
  // RANK that trains: how to reach this device, and where its memory lies.
  caf::replies_to<gpu_sim::DeviceId>::with<device_handle>,
  // TRAINING: for the journal.
  caf::reacts_to<proto::TrainingStep>,
  // Publishes an actor by a name; looks it up. Null: no actor has that name, or it has ended.
  caf::reacts_to<std::string, caf::strong_actor_ptr>, caf::replies_to<std::string>::with<caf::strong_actor_ptr>,
  // CLIENT: to one device; passed on.
  caf::replies_to<gpu_sim::DeviceId, gpu_sim::GetDeviceMetadataRequest>::with<gpu_sim::GetDeviceMetadataResponse>,
  caf::replies_to<gpu_sim::DeviceId, gpu_sim::BeginSendRequest>::with<gpu_sim::BeginSendResponse>,
  caf::replies_to<gpu_sim::DeviceId, gpu_sim::BeginReceiveRequest>::with<gpu_sim::BeginReceiveResponse>,
  caf::replies_to<gpu_sim::DeviceId, gpu_sim::DataChunk>::with<gpu_sim::StreamSendResponse>,
  caf::replies_to<gpu_sim::DeviceId, gpu_sim::GetStreamStatusRequest>::with<gpu_sim::GetStreamStatusResponse>,
  caf::replies_to<gpu_sim::DeviceId, proto::CopyRequest>::with<proto::CopyResponse>,
  caf::replies_to<gpu_sim::DeviceId, proto::AllocateRequest>::with<proto::AllocateResponse>,
  caf::replies_to<gpu_sim::DeviceId, proto::FreeRequest>::with<proto::FreeResponse>,
  caf::replies_to<gpu_sim::DeviceId, proto::StreamCreateRequest>::with<proto::StreamCreateResponse>,
  caf::replies_to<gpu_sim::DeviceId, proto::StreamSynchronizeRequest>::with<proto::StreamSynchronizeResponse>,
  caf::replies_to<gpu_sim::DeviceId, proto::EventRecordRequest>::with<proto::EventRecordResponse>,
  caf::replies_to<gpu_sim::DeviceId, proto::EventWaitRequest>::with<proto::EventWaitResponse>,
  caf::replies_to<gpu_sim::DeviceId, proto::FaultRequest>::with<proto::FaultResponse>,
  // NODE: I am here; answers with the journal. I am back after you were restarted, with the handles of my devices.
  caf::replies_to<proto::NodeJoinRequest, caf::strong_actor_ptr>::with<proto::NodeJoinResponse, caf::strong_actor_ptr>,
  caf::replies_to<proto::NodeJoinRequest, caf::strong_actor_ptr, device_handles>::with<proto::NodeJoinResponse,
                                                                                       caf::strong_actor_ptr>,
  // CLIENT, NODE: which cluster is this, and which run of its coordinator? CLIENT: I am back after you were restarted.
  caf::replies_to<proto::GreetingRequest>::with<proto::GreetingResponse>,
  caf::replies_to<proto::ClientReturn>::with<proto::ClientReturnResponse>,
  // DEVICE: who am I? I am ready.
  caf::replies_to<proto::DeviceJoinRequest>::with<proto::DeviceJoinResponse>,
  caf::reacts_to<proto::DeviceReady, device_handle>,
  // NODE: there is no direct way to another one.
  caf::reacts_to<proto::NodeApart>,
  // RELAY: which of its devices live. STREAM without a relay: it lives.
  caf::reacts_to<proto::ProgressReport>, caf::reacts_to<proto::Progress>,
  // COMMUNICATOR: a member is lost; does its process live? I want a spare; results were written.
  caf::reacts_to<proto::MemberLost>, caf::replies_to<proto::ProbeRequest>::with<proto::ProbeResponse>,
  caf::replies_to<proto::SpareRequest>::with<proto::SpareResponse, device_handle>,
  caf::reacts_to<proto::OutputsWritten>,
  // INTERNAL: the rank of this number has waited for others for a while.
  caf::reacts_to<atom::tick>, caf::reacts_to<atom::tick, uint64_t>,
  // INTERNAL: a limit has passed, of a call that was passed on or of what has this number.
  caf::reacts_to<atom::expire>, caf::reacts_to<atom::expire, uint64_t>>;

} // namespace ringmaster
