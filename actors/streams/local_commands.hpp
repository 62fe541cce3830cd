#pragma once

#include "actors/streams/command.hpp"

#include <caf/typed_response_promise.hpp>

#include <memory>

namespace ringmaster {

// The commands of one device. Each answers its promise when it ends; a command whose stream dies answers device_lost.

/// Copies host bytes (the block, or those within the message) to the device, or device bytes to the host.
std::unique_ptr<command> make_memcpy(const gpu_sim::MemcpyRequest& request, byte_block block,
                                     caf::typed_response_promise<gpu_sim::MemcpyResponse, byte_block> promise);

/// Copies within the device; the ranges may overlap.
std::unique_ptr<command> make_copy(const proto::CopyRequest& request,
                                   caf::typed_response_promise<proto::CopyResponse> promise);

/// Reports to the device that this record of `event` is made.
std::unique_ptr<command> make_event_record(event_id event, uint64_t record);

/// Waits until that record is made. A record that is made before the command is at the head counts.
std::unique_ptr<command> make_event_wait(event_id event, uint64_t record);

/// Answers when it comes to the head, with the error of the command before it if that failed; or when its limit passes,
/// with what the stream is doing.
std::unique_ptr<command> make_synchronize(double limit_s,
                                          caf::typed_response_promise<proto::StreamSynchronizeResponse> promise);

// The two ends of a transfer from device to device, by the course protocol. Each end reports the outcome to its device.

/// Offers the range to the destination. Ends when it has been read or refused, or was not asked for within the transfer
/// limit.
std::unique_ptr<command> make_send(const gpu_sim::BeginSendRequest& request, stream_id transfer,
                                   const device_handle& destination);

/// Reads the transfer's block from `source`, or takes chunks from outside, until all its bytes have come.
std::unique_ptr<command> make_receive(const gpu_sim::BeginReceiveRequest& request, device_id source);

/// Reports to the device that the transfer has failed before it was queued.
void refuse_transfer(stream_state& stream, stream_id transfer, const caf::error& error);

/// Bytes from outside for a posted receive.
gpu_sim::StreamSendResponse receive_data(stream_state& stream, const gpu_sim::DataChunk& x);

} // namespace ringmaster
