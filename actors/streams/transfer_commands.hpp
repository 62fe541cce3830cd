#pragma once

#include "actors/streams/command.hpp"

#include <memory>

namespace ringmaster {

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
