#pragma once

#include "messages/byte_block.hpp"
#include "messages/cluster.pb.h"
#include "messages/collective.pb.h"
#include "messages/errc.hpp"
#include "messages/gpu_sim.pb.h"
#include "messages/journal.pb.h"
#include "messages/protobuf_inspect.hpp"
#include "messages/protobuf_payload.hpp"
#include "messages/transfer.hpp"

#include <caf/type_id.hpp>

// Every type that crosses a mailbox. Ids are positions: append, never reorder.
CAF_BEGIN_TYPE_ID_BLOCK(ringmaster, caf::first_custom_type_id)

CAF_ADD_TYPE_ID(ringmaster, (ringmaster::errc))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::byte_block))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::offer))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::taken))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::refused))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::pull))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::chunk))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::device_handle))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::device_handles))

CAF_ADD_TYPE_ID(ringmaster, (gpu_sim::DeviceId))
CAF_ADD_TYPE_ID(ringmaster, (gpu_sim::StreamId))
CAF_ADD_TYPE_ID(ringmaster, (gpu_sim::GetDeviceMetadataRequest))
CAF_ADD_TYPE_ID(ringmaster, (gpu_sim::GetDeviceMetadataResponse))
CAF_ADD_TYPE_ID(ringmaster, (gpu_sim::BeginSendRequest))
CAF_ADD_TYPE_ID(ringmaster, (gpu_sim::BeginSendResponse))
CAF_ADD_TYPE_ID(ringmaster, (gpu_sim::BeginReceiveRequest))
CAF_ADD_TYPE_ID(ringmaster, (gpu_sim::BeginReceiveResponse))
CAF_ADD_TYPE_ID(ringmaster, (gpu_sim::DataChunk))
CAF_ADD_TYPE_ID(ringmaster, (gpu_sim::StreamSendResponse))
CAF_ADD_TYPE_ID(ringmaster, (gpu_sim::GetStreamStatusRequest))
CAF_ADD_TYPE_ID(ringmaster, (gpu_sim::GetStreamStatusResponse))
CAF_ADD_TYPE_ID(ringmaster, (gpu_sim::CommInitRequest))
CAF_ADD_TYPE_ID(ringmaster, (gpu_sim::CommInitResponse))
CAF_ADD_TYPE_ID(ringmaster, (gpu_sim::GetCommStatusRequest))
CAF_ADD_TYPE_ID(ringmaster, (gpu_sim::GetCommStatusResponse))
CAF_ADD_TYPE_ID(ringmaster, (gpu_sim::GroupStartRequest))
CAF_ADD_TYPE_ID(ringmaster, (gpu_sim::GroupStartResponse))
CAF_ADD_TYPE_ID(ringmaster, (gpu_sim::GroupEndRequest))
CAF_ADD_TYPE_ID(ringmaster, (gpu_sim::GroupEndResponse))
CAF_ADD_TYPE_ID(ringmaster, (gpu_sim::AllReduceRingRequest))
CAF_ADD_TYPE_ID(ringmaster, (gpu_sim::AllReduceRingResponse))
CAF_ADD_TYPE_ID(ringmaster, (gpu_sim::MemcpyRequest))
CAF_ADD_TYPE_ID(ringmaster, (gpu_sim::MemcpyResponse))

CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::CollectiveRequest))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::CollectiveResponse))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::RankReport))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::Release))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::Quiesce))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::Quiesced))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::ProgressRequest))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::Progress))

CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::NodeJoinRequest))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::NodeJoinResponse))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::NodePeers))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::Adopt))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::DeviceJoinRequest))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::DeviceJoinResponse))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::DeviceReady))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::membership))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::MemberLost))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::SpareRequest))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::SpareResponse))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::OutputsWritten))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::CommWaitRequest))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::CommAbortRequest))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::CommAbortResponse))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::CommDestroyRequest))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::CommDestroyResponse))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::AllocateRequest))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::AllocateResponse))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::FreeRequest))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::FreeResponse))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::CopyRequest))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::CopyResponse))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::StreamCreateRequest))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::StreamCreateResponse))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::StreamSynchronizeRequest))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::StreamSynchronizeResponse))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::EventRecordRequest))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::EventRecordResponse))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::EventWaitRequest))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::EventWaitResponse))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::FaultRequest))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::FaultResponse))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::ClusterInfoRequest))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::ClusterInfo))

CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::Record))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::JournalFlushRequest))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::JournalFlushResponse))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::JournalTailRequest))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::JournalTailResponse))

CAF_ADD_TYPE_ID(ringmaster, (ringmaster::operation_orders))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::joint_arrival))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::CommDeriveRequest))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::CommDeriveResponse))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::RankCall))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::RankCallResponse))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::ProgressReport))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::NodeApart))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::NodePeers_Peer))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::WayLost))

// An atom's text is at most 10 characters in CAF 0.17.
CAF_ADD_ATOM(ringmaster, ringmaster::atom, tick, "tick")
CAF_ADD_ATOM(ringmaster, ringmaster::atom, resume, "resume")
CAF_ADD_ATOM(ringmaster, ringmaster::atom, flush, "flush")
CAF_ADD_ATOM(ringmaster, ringmaster::atom, expire, "expire")
CAF_ADD_ATOM(ringmaster, ringmaster::atom, recorded, "recorded")

CAF_ADD_TYPE_ID(ringmaster, (ringmaster::joint_arrivals))
CAF_ADD_TYPE_ID(ringmaster, (ringmaster::proto::RankReports))
CAF_ADD_TYPE_ID(ringmaster, (std::vector<ringmaster::device_id>))

CAF_END_TYPE_ID_BLOCK(ringmaster)
