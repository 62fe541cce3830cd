#pragma once

#include "client/work.hpp"
#include "messages/interfaces.hpp"
#include "messages/wire_ids.hpp"

#include <caf/actor_system.hpp>
#include <caf/expected.hpp>

#include <optional>
#include <string>
#include <vector>

namespace ringmaster {

struct own_device;  // client/rank_mailbox.hpp
class rank_mailbox; // the same
struct rank_outbox; // client/rank_caller.hpp

/// The buffers of a rank, as addresses on its device. In place it has one, as large as the larger of its input and
/// output; runtime/schedule/collective.hpp says where the two start in it.
struct rank_buffers {
  uint64_t input = 0;  ///< 0 where the rank has none, such as ranks other than the root of a scatter.
  uint64_t output = 0; ///< The same.
  bool in_place = false;

  static rank_buffers at(uint64_t address) { return {address, 0, true}; }
};

/// How to reduce.
struct reduction_choice {
  gpu_sim::ReduceOp op = gpu_sim::SUM;
  std::string user_op = {}; ///< op USER: the name it is registered by.
  double factor = 1;        ///< op PREMUL_SUM: of this rank's input.
};

struct call_options {
  std::string algorithm = "auto";
  uint64_t chunk_count = 0; ///< Pipelined algorithms: elements of a piece; 0: as the network asks for.
  caf::timespan timeout{
    0}; ///< For the operation to have ended, on whatever rank it waits. 0: the communicator's own limits.
};

/// A communicator as one of its ranks calls it: NCCL's ncclComm_t, MPI's communicator. Every rank calls on its own
/// handle, in its own thread or process; the k-th collective of one rank matches the k-th of every other. Calls return
/// at once; work() has their result. The calls of all ranks are compared before a byte moves: a mismatch fails on every
/// rank, with an error that names ranks and values, and leaves buffers and communicator unchanged. A rank that does not
/// call within the limit is named in the errors of those that wait for it.
///
/// Counts are in elements, as in runtime/schedule/collective.hpp. One thread at a time uses a handle; it can be moved.
class rank_communicator {
public:
  /// The handle of rank `rank` of the communicator. Errors: unknown_communicator; invalid_argument for a rank that it
  /// does not have; timed_out, device_lost.
  static caf::expected<rank_communicator> attach(caf::actor_system& system, const coordinator_actor& coordinator,
                                                 communicator_id communicator, uint32_t rank,
                                                 caf::timespan limit = std::chrono::seconds{30});
  /// The same for members that are known from CommInit or GetCommStatus.
  rank_communicator(caf::actor_system& system, coordinator_actor coordinator, communicator_id communicator,
                    const gpu_sim::GetCommStatusResponse& members, uint32_t rank);
  rank_communicator(rank_communicator&&) noexcept = default;
  rank_communicator& operator=(rank_communicator&&) noexcept;
  ~rank_communicator();

  /// Uses shared memory for small collectives from now on, if all ranks are processes of this host that do the same and
  /// each hosts its own device. All ranks call it between the same two calls. Without it, all calls are messages.
  void meet_by(std::shared_ptr<own_device> device, caf::timespan limit = std::chrono::seconds{30});

  /// Number of calls since `meet_by` that used shared memory.
  uint64_t calls_met() const;

  communicator_id id() const noexcept { return id_; }
  uint32_t rank() const noexcept { return rank_; }
  uint32_t size() const noexcept { return size_; }
  /// The epoch that rank and size are of. A loss of members opens a new one; operations continue without `update()`,
  /// and ranks in calls are numbered as in this epoch.
  epoch_number epoch() const noexcept { return epoch_; }
  const gpu_sim::DeviceMetadata& device() const noexcept { return device_; }

  /// Updates rank, size and epoch. All ranks call it between the same two calls. Errors: as of `attach`; device_lost
  /// where this rank is no longer a member.
  caf::error update(caf::timespan limit = std::chrono::seconds{30});

  work all_reduce(const rank_buffers& buffers, uint64_t count, proto::DataType datatype,
                  const reduction_choice& how = {}, const call_options& opts = {});
  work reduce(const rank_buffers& buffers, uint64_t count, proto::DataType datatype, uint32_t root,
              const reduction_choice& how = {}, const call_options& opts = {});
  work broadcast(const rank_buffers& buffers, uint64_t count, proto::DataType datatype, uint32_t root,
                 const call_options& opts = {});
  /// `count`: elements of one rank's block, here and below.
  work all_gather(const rank_buffers& buffers, uint64_t count, proto::DataType datatype, const call_options& opts = {});
  work reduce_scatter(const rank_buffers& buffers, uint64_t count, proto::DataType datatype,
                      const reduction_choice& how = {}, const call_options& opts = {});
  work all_to_all(const rank_buffers& buffers, uint64_t count, proto::DataType datatype, const call_options& opts = {});
  work gather(const rank_buffers& buffers, uint64_t count, proto::DataType datatype, uint32_t root,
              const call_options& opts = {});
  work scatter(const rank_buffers& buffers, uint64_t count, proto::DataType datatype, uint32_t root,
               const call_options& opts = {});

  /// The v-variants: `counts` has one element for each rank, the same list on every rank.
  work all_gather_v(const rank_buffers& buffers, std::vector<uint64_t> counts, proto::DataType datatype,
                    const call_options& opts = {});
  work reduce_scatter_v(const rank_buffers& buffers, std::vector<uint64_t> counts, proto::DataType datatype,
                        const reduction_choice& how = {}, const call_options& opts = {});
  work gather_v(const rank_buffers& buffers, std::vector<uint64_t> counts, proto::DataType datatype, uint32_t root,
                const call_options& opts = {});
  work scatter_v(const rank_buffers& buffers, std::vector<uint64_t> counts, proto::DataType datatype, uint32_t root,
                 const call_options& opts = {});
  /// `send_counts` and `receive_counts`: elements that this rank sends to and receives from each rank.
  work all_to_all_v(const rank_buffers& buffers, std::vector<uint64_t> send_counts,
                    std::vector<uint64_t> receive_counts, proto::DataType datatype, const call_options& opts = {});

  work barrier(const call_options& opts = {});
  /// The k-th send to a rank matches its k-th receive from this one. Two ranks that send to each other first need a
  /// group.
  work send(uint64_t address, uint64_t count, proto::DataType datatype, uint32_t to, const call_options& opts = {});
  work receive(uint64_t address, uint64_t count, proto::DataType datatype, uint32_t from,
               const call_options& opts = {});

  /// A communicator of the ranks with the same color, ordered by key, then by rank; none for a color below 0. Every
  /// rank calls it and waits for the others. Errors: as of work::wait and `attach`.
  caf::expected<std::optional<rank_communicator>> split(int32_t color, int64_t key = 0,
                                                        caf::timespan limit = std::chrono::seconds{30});

  /// Makes any call.
  work call(proto::RankCall::Part part, const call_options& opts);

  /// Calls from now on are made together by `group_end`. They may be matched in any order, and many small ones travel
  /// in one message. All their work handles are those of the group. See `call_group` for several communicators.
  void group_start();
  work group_end();

private:
  struct open_group {
    proto::RankCall call;
    std::shared_ptr<work::state> calls;
  };

  proto::RankCall new_call() const;
  void hand_over(proto::RankCall call, std::shared_ptr<work::state> calls);
  void leave_meeting();
  void close();
  void take_members(const gpu_sim::GetCommStatusResponse& members, uint32_t rank);

  caf::actor_system* system_;
  coordinator_actor coordinator_;
  communicator_id id_;
  uint32_t rank_ = 0;
  uint32_t size_ = 0;
  epoch_number epoch_;
  gpu_sim::DeviceMetadata device_;
  std::shared_ptr<rank_outbox> outbox_;
  caf::actor caller_; ///< Makes the calls in order.
  std::shared_ptr<own_device> own_;
  std::shared_ptr<rank_mailbox> meeting_; ///< Null: all calls are messages.
  std::optional<open_group> group_;
};

/// GroupStart and GroupEnd over one or more communicators of one process.
class call_group {
public:
  explicit call_group(std::vector<rank_communicator*> members);
  call_group(const call_group&) = delete;
  call_group& operator=(const call_group&) = delete;
  /// Makes the calls if `end()` was not called: other ranks may wait for them.
  ~call_group();

  /// Makes all calls; the work finishes when all of them have.
  work end();

private:
  std::vector<rank_communicator*> members_;
};

} // namespace ringmaster
