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

} // namespace ringmaster
