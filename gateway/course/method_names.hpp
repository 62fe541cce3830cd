#pragma once

#include <array>
#include <string_view>

namespace ringmaster::gateway::methods {

// The methods that are served, as they travel.
constexpr std::string_view comm_init = "/gpu_sim.GPUCoordinator/CommInit";
constexpr std::string_view get_comm_status = "/gpu_sim.GPUCoordinator/GetCommStatus";
constexpr std::string_view group_start = "/gpu_sim.GPUCoordinator/GroupStart";
constexpr std::string_view group_end = "/gpu_sim.GPUCoordinator/GroupEnd";
constexpr std::string_view all_reduce_ring = "/gpu_sim.GPUCoordinator/AllReduceRing";
constexpr std::string_view memcpy = "/gpu_sim.GPUCoordinator/Memcpy";
constexpr std::string_view comm_destroy = "/gpu_sim.GPUCoordinator/CommDestroy";
constexpr std::string_view comm_finalize = "/gpu_sim.GPUCoordinator/CommFinalize";
constexpr std::string_view comm_remove_device = "/gpu_sim.GPUCoordinator/CommRemoveDevice";
constexpr std::string_view naive_all_reduce = "/gpu_sim.GPUCoordinator/NaiveAllReduce";
constexpr std::string_view all_reduce = "/gpu_sim.GPUCoordinator/AllReduce";
constexpr std::string_view heartbeat = "/gpu_sim.GPUCoordinator/Heartbeat";
constexpr std::array of_coordinator{comm_init,          get_comm_status,  group_start,  group_end,
                                    all_reduce_ring,    memcpy,           comm_destroy, comm_finalize,
                                    comm_remove_device, naive_all_reduce, all_reduce,   heartbeat};

constexpr std::string_view get_device_metadata = "/gpu_sim.GPUDevice/GetDeviceMetadata";
constexpr std::string_view begin_send = "/gpu_sim.GPUDevice/BeginSend";
constexpr std::string_view begin_receive = "/gpu_sim.GPUDevice/BeginReceive";
constexpr std::string_view stream_send = "/gpu_sim.GPUDevice/StreamSend";
constexpr std::string_view get_stream_status = "/gpu_sim.GPUDevice/GetStreamStatus";
constexpr std::string_view device_memcpy = "/gpu_sim.GPUDevice/Memcpy";
constexpr std::string_view setup_communication = "/gpu_sim.GPUDevice/SetupCommunication";
constexpr std::string_view reset_gpu = "/gpu_sim.GPUDevice/ResetGpu";
constexpr std::string_view device_heartbeat = "/gpu_sim.GPUDevice/Heartbeat";
constexpr std::array of_device{get_device_metadata, begin_send,        begin_receive,
                               stream_send,         get_stream_status, device_memcpy,
                               setup_communication, reset_gpu,         device_heartbeat};

} // namespace ringmaster::gateway::methods
