#pragma once

#include <ringmaster/cluster.hpp>
#include <ringmaster/collectives.hpp>
#include <ringmaster/memory.hpp>
#include <ringmaster/owning_handle.hpp>

#include <chrono>
#include <optional>
#include <span>

namespace RINGMASTER_API {

/// What a communicator does when one of its devices is lost.
enum class failure_policy : int {
  shrink = 0,  ///< Go on with the survivors; ranks close up.
  replace = 1, ///< A spare device takes the rank, its input restored from the host's copy.
  abort = 2    ///< Fail what is in flight and refuse later calls.
};

/// How a communicator is made.
struct communicator_options {
  std::optional<failure_policy> on_failure{}; ///< None: as the cluster is configured (communicator.policy).
  std::optional<bool> deterministic{};        ///< Reductions add in rank order. None: communicator.deterministic.
  std::string name{};                         ///< For logs: one line, 64 bytes at most (NCCL's commName).
};

/// A collective that the host calls for all ranks.
struct collective_call {
  collective_kind kind = collective_kind::all_reduce; ///< What it does.
  std::string algorithm = "auto";    ///< "ring", "tree", ...; "auto" is the one estimated to be fastest.
  datatype type = datatype::float64; ///< Of the elements.
  reduction how{};                   ///< Kinds that reduce.
  uint64_t count = 0;                ///< Elements: of one rank's block where the kind has blocks, else of the whole.
  uint32_t root = 0;                 ///< Kinds with a root; send_recv: the sender.
  uint32_t peer = 0;                 ///< send_recv: the receiver.
  std::vector<uint64_t>
    counts{};         ///< v-variants: elements of each rank's block; all_to_all: from s to r at s * ranks + r.
  uint64_t chunk = 0; ///< Pipelined algorithms: elements of a piece; 0: chosen by the library.
  std::vector<uint64_t> inputs{};      ///< Addresses in rank order; 0 for a rank without one. In place: its one buffer.
  std::vector<uint64_t> outputs{};     ///< The same; empty: in place.
  std::chrono::nanoseconds timeout{0}; ///< Limit from call to end; 0: the communicator's.
};

/// What a rank did that made an operation or the group fail.
enum class fault_kind : int {
  unknown = 0,     ///< No rank is known to be the cause.
  crashed = 1,     ///< The device or its process exited.
  hung = 2,        ///< It stopped answering, or makes no progress.
  slow = 3,        ///< It works much more slowly than the others.
  unreachable = 4, ///< Its process lives, but a connection to it is cut.
  called_else = 5, ///< Its call does not match the others' calls.
  never_called = 6, ///< The others waited for its call until their limit.
  broken = 7       ///< A step of the operation failed on it.
};

/// One failure of a communicator, the same for all of its ranks.
struct fault_verdict {
  /// A rank that is the cause.
  struct culprit {
    uint32_t rank = 0; ///< In `epoch`.
    device_id device{};
    std::string node{}; ///< These three: empty or 0 if they are not known.
    std::string host{};
    uint64_t pid = 0;
  };

  uint64_t number = 0;              ///< From 1 in each communicator.
  fault_kind kind = fault_kind::unknown;
  epoch_number epoch{};             ///< Before the failure.
  std::vector<culprit> culprits{};  ///< In rank order; none: not known.
  sequence_number operation{};      ///< That waited; 0: none was under way.
  std::string text{};               ///< One paragraph for people, with what was done.
};

/// State of a communicator.
struct communicator_status {
  bool in_progress = false;           ///< Operations are in flight.
  std::optional<error> failed{};      ///< The first operation that failed since the last call of `status` or `wait`.
  epoch_number epoch{};               ///< Changes with the members.
  std::vector<device_info> devices{}; ///< In rank order, of `epoch`.
  std::string event{};                ///< What happened to the communicator, such as the loss of a rank; for people.
  uint32_t operations_in_flight = 0;  ///< Enqueued and not finished.
  std::vector<fault_verdict> verdicts{};    ///< The latest failures, oldest first.
};

/// A communicator over devices of a cluster, called by the host for all ranks: NCCL's communicators in one process. The
/// destructor destroys it and gives its devices back. Counts are in elements. One thread at a time, with its client.
/// Losses of devices are handled as its failure_policy says (Bland et al., User Level Failure Mitigation, 2013).
class communicator {
public:
  communicator_id id() const noexcept { return its_->id; }                           ///< Never used twice.
  uint32_t size() const noexcept { return static_cast<uint32_t>(devices().size()); } ///< Ranks when it was made.
  /// Devices in rank order when it was made; `status` has the current ones.
  const std::vector<device_info>& devices() const noexcept { return its_->devices; }

  /// Allocates `count` elements of T on the device of each rank. Errors: out_of_memory, device_lost.
  template <class T>
  expected<std::vector<device_memory>> allocate(uint64_t count) {
    return allocate_bytes(count * sizeof(T));
  }
  /// The same in bytes.
  expected<std::vector<device_memory>> allocate_bytes(uint64_t bytes);

  /// Enqueues an in-place all-reduce of `count` elements of T in the ranks' memory. Returns the operation's number
  /// without waiting for the operation. Errors: invalid_argument, aborted, unknown_communicator.
  template <class T>
  expected<sequence_number> all_reduce(const std::vector<device_memory>& buffers, uint64_t count,
                                       const reduction& how = {}, const std::string& algorithm = "auto") {
    collective_call call;
    call.algorithm = algorithm;
    call.type = datatype_of<T>();
    call.how = how;
    call.count = count;
    for (auto& each : buffers)
      call.inputs.push_back(each.address());
    return enqueue(call);
  }
  /// Enqueues any collective. Returns its number. Errors as of `all_reduce`; too_many.
  expected<sequence_number> enqueue(const collective_call& call);

  /// Operations called from here until `group_end` start together and small ones are fused (ncclGroupStart). Errors:
  /// group_misuse.
  expected<void> group_start();
  expected<void> group_end(); ///< \copydoc group_start

  /// State without waiting. Errors: device_lost where the coordinator has exited, unknown_communicator.
  expected<communicator_status> status();
  /// Waits until nothing is in flight. Errors: that of the first operation that failed; timed_out, naming the rank that
  /// the operation waits for.
  expected<communicator_status> wait(std::chrono::nanoseconds within);
  /// Fails what is in flight and refuses later calls. The reason appears in errors and in the journal.
  expected<void> abort(const std::string& reason);

  /// Communicators of this one's ranks (MPI_Comm_split): those of equal colour, ordered by key, then by rank. One
  /// element for each rank; colour below 0: in none.
  expected<std::vector<communicator>> split(const std::vector<int32_t>& colors, const std::vector<int64_t>& keys = {});
  /// The same ranks (MPI_Comm_dup).
  expected<communicator> duplicate();
  /// Without these ranks (ncclCommShrink).
  expected<communicator> shrink(const std::vector<uint32_t>& ranks);
  /// With this number of free devices more, as the highest ranks. Errors: too_few_devices.
  expected<communicator> grow(uint32_t devices);

  /// Internal.
  communicator(std::shared_ptr<client_state> owner, communicator_id id, std::vector<device_info> devices)
    : its_(std::move(owner), {id, std::move(devices)}) {}

private:
  struct group {
    communicator_id id{};
    std::vector<device_info> devices{};

    void give_back(client_state& client) const;
  };

  owning_handle<group> its_;
};

} // namespace RINGMASTER_API
